// SPDX-License-Identifier: Apache-2.0
//
// `encore info --weights`: prepares an encoder of each precision without packing it, and asks it
// for sizes.

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/torch_weights.h"
#include "engine/nn/layer_tensors.h"
#include "engine/nn/prepared_encoder.h"
#include "engine/platform/path.h"
#include "tools/encore/converted_tensors.h"
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

// An encoder's weights, of a file or of a folder, which must stay open.
struct Weights {
  EncoderConfig config;
  EncoderWeights views;
  Precision made_for = Precision::kF32;
  std::vector<MatrixOfLayer> kept;  // of integers, in bf16
  Json embeddings;                  // of a folder
};

Weights WeightsOf(const SafetensorsFile& file) {
  TorchOverrides overrides;  // which takes no memory
  if (!file.metadata().contains("activation")) overrides.activation = Activation::kRelu;
  const TorchWeights weights = Take(TorchWeights::FromFile(file, overrides), "--weights");
  return {weights.config(), weights.weights(), weights.precision(), weights.keep(), {}};
}

// Tables and the scales of their rows, which the library reads where they lie in the file.
Weights WeightsOf(const WeightsFolder& folder) {
  size_t bytes = 0;
  std::set<std::string> types;
  const auto count = [&](const SafetensorsEntry* entry) {
    if (entry == nullptr) return;
    bytes += entry->bytes.size();
    types.insert(std::string(DTypeName(entry->dtype)));
  };
  for (const std::string& name : folder.EmbeddingNames()) {
    count(folder.tensors.Find(name));
    count(folder.tensors.Find(RowScaleName(name)));
  }
  Weights weights = {folder.config.encoder, folder.weights, folder.precision, {}, {}};
  if (folder.precision == Precision::kInt8) weights.kept = internal::FloatMatrices(folder.weights);
  weights.embeddings = {{"bytes", bytes}, {"types", types}};
  return weights;
}

Json MemoryOf(const Weights& weights, Precision precision, int threads) {
  std::vector<MatrixOfLayer> keep;
  if (IsInteger(precision)) keep = weights.kept;
  const Result<PreparedEncoder> encoder = PreparedEncoder::Create(
      weights.config, weights.views, {.precision = precision, .keep = keep});
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

void PrintText(std::ostream& out, const Weights& weights, const std::string& path,
               const Json& memories) {
  const EncoderConfig& config = weights.config;
  out << Printable(path) << ": " << Counted(config.num_layers(), "layer") << ", d_model "
      << config.d_model << ", d_ff " << config.layers[0].d_ff << ", made for "
      << PrecisionName(weights.made_for);
  if (!weights.kept.empty()) {
    out << " with " << weights.kept.size() << (weights.kept.size() == 1 ? " matrix" : " matrices")
        << " kept in bf16";
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
  if (weights.embeddings.is_null()) return;
  out << "Tables of embeddings, read where they lie: " << Mebibytes(weights.embeddings["bytes"])
      << " of " << Joined(weights.embeddings["types"].get<std::vector<std::string>>(), " and ")
      << "\n";
}

}  // namespace

void PrintWeightsInfo(std::ostream& out, const WeightsInfoRequest& request) {
  std::error_code error;
  std::optional<WeightsFolder> folder;
  std::optional<SafetensorsFile> file;
  if (std::filesystem::is_directory(internal::ToPath(request.path), error)) {
    folder = OpenWeightsFolder(request.path, "--weights");
  } else {
    file = Take(SafetensorsFile::Open(request.path), "--weights");
  }
  const Weights weights = folder ? WeightsOf(*folder) : WeightsOf(*file);
  Json memories = Json::array();
  for (const Precision precision :
       {Precision::kF32, Precision::kBF16, Precision::kInt8, Precision::kInt4}) {
    memories.push_back(MemoryOf(weights, precision, request.threads));
  }
  if (std::all_of(memories.begin(), memories.end(),
                  [](const Json& memory) { return memory.contains("refused"); })) {
    throw Failure("--weights " + request.path + ": " + memories[0]["refused"].get<std::string>());
  }
  if (request.json) {
    Json json = {{"made_for", PrecisionName(weights.made_for)},
                 {"kept", weights.kept.size()},
                 {"memory", memories}};
    if (!weights.embeddings.is_null()) json["embeddings"] = weights.embeddings;
    out << json.dump(1) << "\n";
  } else {
    PrintText(out, weights, request.path, memories);
  }
}

}  // namespace encore::tool
