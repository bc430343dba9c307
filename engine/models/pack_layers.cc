// SPDX-License-Identifier: Apache-2.0
//
// An encoder from the tensors of its layers.

#include "engine/models/pack_layers.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/base/stored_precision.h"
#include "engine/models/config_keys.h"
#include "engine/nn/layer_tensors.h"
#include "engine/platform/file_error.h"
#include "engine/platform/mapped_file.h"
#include "engine/platform/path.h"

namespace encore::inline v0_1::internal {
namespace {

// What the caller wants, or what the weights were made for.
Result<EncoderOptions> ChoosePrecision(const OpenOptions& options, const WeightFiles& files,
                                       const EncoderWeights& weights,
                                       std::vector<Decision>* decisions) {
  Precision stored = Precision::kF32;
  for (const SafetensorsFile& file : files.files()) {
    const Result<Precision> found = StoredPrecision(file.metadata());
    if (!found.ok()) {
      return Prefixed(file.name(), found.status());
    }
    if (*found != Precision::kF32) stored = *found;
  }
  EncoderOptions chosen{.precision = options.precision.value_or(stored),
                        .executor = options.executor,
                        .keep = options.keep,
                        .amx_bf16 = options.amx_bf16};
  const std::string source = options.precision           ? "option precision"
                             : stored == Precision::kF32 ? "default"
                                                         : files.name();
  if (chosen.precision == Precision::kF32) {
    decisions->push_back({"precision", "f32", source});
    return chosen;
  }
  if (IsInteger(chosen.precision) && stored == Precision::kInt8) {
    const std::vector<MatrixOfLayer> floats = FloatMatrices(weights);
    chosen.keep.insert(chosen.keep.end(), floats.begin(), floats.end());
  }
  std::string value = std::string(PrecisionName(chosen.precision)) + " in the layers";
  if (!chosen.keep.empty()) {
    value += " (" + std::to_string(chosen.keep.size()) + " kept in bf16)";
  }
  decisions->push_back({"precision", value + ", f32 in all else", source});
  return chosen;
}

// A cache for these weights under this config.json.
Result<PackedCache> CacheOf(const LayerSource& source) {
  const auto& [folder, options, files, spec, adapter] = source;
  if (options.cache.empty()) return PackedCache();
  ENCORE_RETURN_IF_ERROR(CheckPath(options.cache));
  std::error_code ignored;  // a path that cannot be resolved is as good a name
  std::filesystem::path path =
      std::filesystem::weakly_canonical(ToPath(folder.PathOf(files.name())), ignored);
  if (path.empty()) path = ToPath(folder.PathOf(files.name()));
  std::string identity = files.Identity();
  if (!identity.empty()) {
    ENCORE_ASSIGN_OR_RETURN(const std::optional<MappedFile> config, folder.Read("config.json"));
    if (config) identity += TextOf(*config);
    if (adapter) identity = adapter->Identity().empty() ? "" : identity + adapter->Identity();
  }
  return PackedCache{.folder = options.cache,
                     // One folder may have layers for texts and for pictures.
                     .model = PathText(path) + (options.task.empty() ? "" : " " + options.task) +
                              (spec.patches.patch_size == 0 ? "" : " pictures"),
                     .identity = std::move(identity),
                     .compare = options.compare_cache,
                     .trust = options.trust_cache};
}

}  // namespace

void NoteUnused(const ModelSpec& spec, const ModelTensors& tensors, std::string_view read_later,
                std::vector<Decision>* decisions) {
  std::vector<std::string> unused = tensors.Unused(*spec.family);
  if (!read_later.empty()) std::erase(unused, read_later);
  if (unused.empty()) return;
  constexpr size_t kShown = 4;
  std::string names;
  for (size_t i = 0; i < std::min(kShown, unused.size()); ++i) {
    names += (names.empty() ? "" : ", ") + Quoted(unused[i]);
  }
  if (unused.size() > kShown) names += " and " + std::to_string(unused.size() - kShown) + " more";
  decisions->push_back(
      {"ignored", (unused.size() == 1 ? "tensor " : "tensors ") + names, tensors.files().name()});
}

Status CheckNoForeignTensor(const ModelSpec& spec, const WeightFiles& files) {
  for (const SafetensorsFile& file : files.files()) {
    for (const SafetensorsEntry& entry : file.tensors()) {
      for (const std::string_view part : spec.family->foreign_tensors) {
        if (entry.name.find(part) == std::string::npos) continue;
        return Status(ErrorCode::kUnsupported,
                      file.name() + ": tensor " + Quoted(entry.name) +
                          ": belongs to a variant of " + spec.model_type +
                          " that encore does not compute; wanted no name with " + Quoted(part));
      }
    }
  }
  return {};
}

Result<Encoder> PackLayers(const LayerSource& source, const EncoderWeights& weights,
                           std::vector<Decision>* decisions) {
  const auto& [folder, options, files, spec, adapter] = source;
  ENCORE_ASSIGN_OR_RETURN(EncoderOptions chosen,
                          ChoosePrecision(options, files, weights, decisions));
  ENCORE_ASSIGN_OR_RETURN(chosen.cache, CacheOf(source));
  // Pages of a packed layer are released after it, and the others at the end.
  chosen.layer_packed = [&source] { source.files.ReleasePages(); };
  ENCORE_ASSIGN_OR_RETURN(Encoder encoder, Encoder::Create(spec.encoder, weights, chosen));
  if (options.amx_bf16) {
    decisions->push_back({"AMX for bf16",
                          encoder.amx_bf16()                    ? "used"
                          : chosen.precision == Precision::kF32 ? "not used, as all is f32"
                                                                : "not to be had here",
                          "option amx_bf16"});
  }
  if (!options.cache.empty()) {
    decisions->push_back({"packed weights", encoder.cache_use(), "option cache"});
  }
  return encoder;
}

}  // namespace encore::internal
