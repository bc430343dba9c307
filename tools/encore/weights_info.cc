// SPDX-License-Identifier: Apache-2.0
//
// `encore info --weights`: prepares an encoder of each precision without packing it, and asks it
// for sizes.

#include <algorithm>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/torch_weights.h"
#include "engine/nn/prepared_encoder.h"
#include "tools/encore/failure.h"
#include "tools/encore/info_parts.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using internal::PreparedEncoder;
using Json = nlohmann::ordered_json;

constexpr struct {
  const char* lengths;
  BatchLimits limits;
} kBatches[] = {{"1x128", {128, 1}}, {"8x128", {1024, 8}}};

Json MemoryOf(const TorchWeights& weights, Precision precision, int threads) {
  std::vector<MatrixOfLayer> keep;
  if (precision == Precision::kInt8) keep = weights.keep();
  const Result<PreparedEncoder> encoder = PreparedEncoder::Create(
      weights.config(), weights.weights(), {.precision = precision, .keep = keep});
  Json memory = {{"precision", PrecisionName(precision)}};
  if (!encoder.ok()) {
    memory["refused"] = encoder.status().message();
    return memory;
  }
  memory["packed_bytes"] = Take(encoder->PanelBytes());
  for (const auto& batch : kBatches) {
    for (const int n : threads == 1 ? std::vector<int>{1} : std::vector<int>{1, threads}) {
      memory["workspaces"].push_back({{"lengths", batch.lengths},
                                      {"threads", n},
                                      {"bytes", Take(encoder->WorkspaceBytes(batch.limits, n))}});
    }
  }
  return memory;
}

std::string Mebibytes(double bytes) { return Number(bytes / (1 << 20), 2) + " MiB"; }

void PrintText(std::ostream& out, const TorchWeights& weights, const std::string& path,
               const Json& memories) {
  const EncoderConfig& config = weights.config();
  out << Printable(path) << ": " << Counted(config.num_layers(), "layer") << ", d_model "
      << config.d_model << ", d_ff " << config.layers[0].d_ff << ", made for "
      << PrecisionName(weights.precision());
  if (!weights.keep().empty()) {
    out << " with " << weights.keep().size()
        << (weights.keep().size() == 1 ? " matrix" : " matrices") << " kept in bf16";
  }
  out << "\nMemory    packed matrices";
  if (!memories[0].contains("refused")) {
    for (const Json& w : memories[0]["workspaces"]) {
      out << PadLeft(
          "workspace " + w["lengths"].get<std::string>() + ", " + Counted(w["threads"], "thread"),
          30);
    }
  }
  out << "\n";
  for (const Json& memory : memories) {
    out << "  " << PadRight(memory["precision"], 6);
    if (memory.contains("refused")) {
      out << "  none: " << Printable(memory["refused"].get<std::string>()) << "\n";
      continue;
    }
    out << PadLeft(Mebibytes(memory["packed_bytes"]), 17);
    for (const Json& w : memory["workspaces"]) out << PadLeft(Mebibytes(w["bytes"]), 30);
    out << "\n";
  }
}

}  // namespace

void PrintWeightsInfo(std::ostream& out, const WeightsInfoRequest& request) {
  const SafetensorsFile file = Take(SafetensorsFile::Open(request.path), "--weights");
  TorchOverrides overrides;  // which takes no memory
  if (!file.metadata().contains("activation")) overrides.activation = Activation::kRelu;
  const TorchWeights weights = Take(TorchWeights::FromFile(file, overrides), "--weights");
  Json memories = Json::array();
  for (const Precision precision : {Precision::kF32, Precision::kBF16, Precision::kInt8}) {
    memories.push_back(MemoryOf(weights, precision, request.threads));
  }
  if (std::all_of(memories.begin(), memories.end(),
                  [](const Json& memory) { return memory.contains("refused"); })) {
    throw Failure("--weights " + request.path + ": " + memories[0]["refused"].get<std::string>());
  }
  if (request.json) {
    const Json json = {{"made_for", PrecisionName(weights.precision())},
                       {"kept", weights.keep().size()},
                       {"memory", memories}};
    out << json.dump(1) << "\n";
  } else {
    PrintText(out, weights, request.path, memories);
  }
}

}  // namespace encore::tool
