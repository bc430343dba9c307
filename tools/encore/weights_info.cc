// SPDX-License-Identifier: Apache-2.0
//
// Prepares an encoder of each precision without packing it, and asks it for sizes.

#include "tools/encore/weights_info.h"

#include <algorithm>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/torch_weights.h"
#include "engine/nn/prepared_encoder.h"
#include "nlohmann/json.hpp"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using internal::PreparedEncoder;

constexpr struct {
  const char* lengths;
  BatchLimits limits;
} kBatches[] = {{"1x128", {128, 1}}, {"8x128", {1024, 8}}};

struct WorkspaceOf {
  std::string lengths;
  int threads;
  size_t bytes;
};

struct PrecisionMemory {
  Precision precision;
  std::string refused;  // why there is no encoder in this precision, or ""
  size_t packed = 0;    // of the matrices
  std::vector<WorkspaceOf> workspaces = {};
};

PrecisionMemory MemoryOf(const TorchWeights& weights, Precision precision, int threads) {
  std::vector<MatrixOfLayer> keep;
  if (precision == Precision::kInt8) keep = weights.keep();
  const Result<PreparedEncoder> encoder = PreparedEncoder::Create(
      weights.config(), weights.weights(), {.precision = precision, .keep = keep});
  if (!encoder.ok()) return {precision, encoder.status().message()};
  PrecisionMemory memory{precision, "", Take(encoder->PanelBytes())};
  for (const auto& batch : kBatches) {
    for (const int n : threads == 1 ? std::vector<int>{1} : std::vector<int>{1, threads}) {
      memory.workspaces.push_back(
          {batch.lengths, n, Take(encoder->WorkspaceBytes(batch.limits, n))});
    }
  }
  return memory;
}

std::string Mebibytes(size_t bytes) {
  return Number(static_cast<double>(bytes) / (1 << 20), 2) + " MiB";
}

void PrintText(std::ostream& out, const TorchWeights& weights, const WeightsInfoRequest& request,
               const std::vector<PrecisionMemory>& memories) {
  const EncoderConfig& config = weights.config();
  out << Printable(request.path) << ": " << Counted(config.num_layers(), "layer") << ", d_model "
      << config.d_model << ", d_ff " << config.layers[0].d_ff << ", made for "
      << PrecisionName(weights.precision());
  if (!weights.keep().empty()) {
    out << " with " << weights.keep().size()
        << (weights.keep().size() == 1 ? " matrix" : " matrices") << " kept in bf16";
  }
  out << "\nMemory    packed matrices";
  for (const WorkspaceOf& w : memories[0].workspaces) {
    out << PadLeft(
        "workspace " + w.lengths + ", " + Counted(static_cast<size_t>(w.threads), "thread"), 30);
  }
  out << "\n";
  for (const PrecisionMemory& memory : memories) {
    out << "  " << PadRight(std::string(PrecisionName(memory.precision)), 6);
    if (!memory.refused.empty()) {
      out << "  none: " << Printable(memory.refused) << "\n";
      continue;
    }
    out << PadLeft(Mebibytes(memory.packed), 17);
    for (const WorkspaceOf& w : memory.workspaces) out << PadLeft(Mebibytes(w.bytes), 30);
    out << "\n";
  }
}

nlohmann::ordered_json Json(const TorchWeights& weights,
                            const std::vector<PrecisionMemory>& memories) {
  nlohmann::ordered_json json;
  json["made_for"] = PrecisionName(weights.precision());
  json["kept"] = weights.keep().size();
  for (const PrecisionMemory& memory : memories) {
    nlohmann::ordered_json entry = {{"precision", PrecisionName(memory.precision)}};
    if (!memory.refused.empty()) {
      entry["refused"] = memory.refused;
    } else {
      entry["packed_bytes"] = memory.packed;
    }
    for (const WorkspaceOf& w : memory.workspaces) {
      entry["workspaces"].push_back(
          {{"lengths", w.lengths}, {"threads", w.threads}, {"bytes", w.bytes}});
    }
    json["memory"].push_back(entry);
  }
  return json;
}

}  // namespace

void PrintWeightsInfo(std::ostream& out, const WeightsInfoRequest& request) {
  const SafetensorsFile file = Take(SafetensorsFile::Open(request.path), "--weights");
  TorchOverrides overrides;  // which takes no memory
  if (!file.metadata().contains("activation")) overrides.activation = Activation::kRelu;
  const TorchWeights weights = Take(TorchWeights::FromFile(file, overrides), "--weights");
  std::vector<PrecisionMemory> memories;
  for (const Precision precision : {Precision::kF32, Precision::kBF16, Precision::kInt8}) {
    memories.push_back(MemoryOf(weights, precision, request.threads));
  }
  if (std::all_of(memories.begin(), memories.end(),
                  [](const PrecisionMemory& m) { return !m.refused.empty(); })) {
    throw Failure("--weights " + request.path + ": " + memories[0].refused);
  }
  if (request.json) {
    out << Json(weights, memories).dump(1) << "\n";
  } else {
    PrintText(out, weights, request, memories);
  }
}

}  // namespace encore::tool
