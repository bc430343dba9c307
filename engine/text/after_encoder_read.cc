// SPDX-License-Identifier: Apache-2.0
//
// What comes after the encoder, from the folder's modules.

#include <utility>

#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/text/after_encoder.h"
#include "engine/text/pooling_config.h"

namespace encore::inline v0_1::internal {
namespace {

// A Normalize module has no settings but these, and mostly no folder at all.
Status CheckNormalize(const std::string& path, const FolderReading& reading) {
  const std::string file = Within(path, "config.json");
  // Without a folder of its own the file would be the model's.
  if (path.empty()) return {};
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (!json.has_value()) return {};
  JsonMembers members(*json, file);
  for (const std::string_view key : {"module_input_name", "module_output_name"}) {
    if (members.String(key, "sentence_embedding") != "sentence_embedding") {
      members.Refuse(key, "'sentence_embedding'");
    }
  }
  return Finish(members, reading);
}

// Whether config.json is of a causal language model: the first class name says so, and is_causal
// is not false, which makes it an encoder.
Result<bool> IsCausalLanguageModel(const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json,
                          reading.folder.ReadJson("config.json"));
  if (!json.has_value()) return false;
  JsonMembers members(*json, "config.json");
  if (!members.Has("architectures") || !members.Bool("is_causal", true)) return false;
  const std::vector<JsonValue>& names = members.RequiredArray("architectures").items();
  if (!members.ok()) return members.status();
  return !names.empty() && names.front().is_string() &&
         names.front().text().ends_with("ForCausalLM");
}

Result<std::vector<PoolingMode>> ReadPooling(std::span<const ModuleEntry> modules, size_t d_model,
                                             const std::vector<PoolingMode>& pooling,
                                             const FolderReading& reading) {
  if (!pooling.empty()) {
    reading.Tell("pooling", PoolingText(pooling), "option pooling");
    return pooling;
  }
  if (modules.empty()) {
    ENCORE_ASSIGN_OR_RETURN(const bool causal, IsCausalLanguageModel(reading));
    const PoolingMode mode = causal ? PoolingMode::kLastToken : PoolingMode::kMean;
    reading.Tell("pooling", std::string(PoolingModeName(mode)) + ", without normalization",
                 std::string("default without modules.json") +
                     (causal ? ", architectures ends in ForCausalLM" : ""));
    return std::vector<PoolingMode>{mode};
  }
  return ReadPoolingConfig(modules.front().path, d_model, reading);
}

}  // namespace

Result<AfterEncoder> AfterEncoder::Read(std::span<const ModuleEntry> modules, size_t d_model,
                                        const std::vector<PoolingMode>& pooling,
                                        const FolderReading& reading) {
  AfterEncoder after;
  after.d_model_ = d_model;
  ENCORE_ASSIGN_OR_RETURN(std::vector<PoolingMode> modes,
                          ReadPooling(modules, d_model, pooling, reading));
  after.pooling_ = std::move(modes);
  if (!CheckedMul(after.pooling_.size(), d_model, &after.width_)) {
    return InvalidArgument("pooling: the width of its vectors exceeds what can be addressed");
  }
  for (const ModuleEntry& entry : modules) {
    if (entry.kind == ModuleKind::kDense) {
      ENCORE_ASSIGN_OR_RETURN(Dense dense, ReadDense(entry.path, after.width_, reading));
      after.width_ = dense.linear.out_features();
      after.modules_.push_back({std::move(dense)});
      after.trailing_normalizations_ = 0;
    } else if (entry.kind == ModuleKind::kNormalize) {
      ENCORE_RETURN_IF_ERROR(CheckNormalize(entry.path, reading));
      after.modules_.push_back({});
      ++after.trailing_normalizations_;
      reading.Tell("normalize", "to length 1", "modules.json");
    }
  }
  return after;
}

}  // namespace encore::internal
