// SPDX-License-Identifier: Apache-2.0
//
// Reads a Pooling module's config.json in its two spellings: a boolean for each mode, or
// pooling_mode with a name or a list of names.

#include "engine/text/pooling_config.h"

#include <array>
#include <optional>
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

struct ModeName {
  PoolingMode mode;
  std::string_view boolean;
};
constexpr std::array<ModeName, 6> kModes = {{
    {PoolingMode::kCls, "pooling_mode_cls_token"},
    {PoolingMode::kMax, "pooling_mode_max_tokens"},
    {PoolingMode::kMean, "pooling_mode_mean_tokens"},
    {PoolingMode::kMeanSqrtLength, "pooling_mode_mean_sqrt_len_tokens"},
    {PoolingMode::kWeightedMean, "pooling_mode_weightedmean_tokens"},
    {PoolingMode::kLastToken, "pooling_mode_lasttoken"},
}};

std::optional<PoolingMode> ModeOf(const JsonValue& value) {
  if (!value.is_string()) return {};
  for (const ModeName& known : kModes) {
    if (value.text() == PoolingModeName(known.mode)) return known.mode;
  }
  return {};
}

// pooling_mode: a name, or a list of names.
std::vector<PoolingMode> ReadNames(JsonMembers& members) {
  constexpr std::string_view kKey = "pooling_mode";
  const JsonValue& value = *members.Find(kKey);
  std::vector<PoolingMode> modes;
  const auto add = [&](const JsonValue& name) {
    const std::optional<PoolingMode> mode = ModeOf(name);
    if (mode) {
      modes.push_back(*mode);
    } else {
      members.Refuse(kKey,
                     "cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, or a list of "
                     "these");
    }
  };
  if (value.is_array() && !value.items().empty()) {
    for (const JsonValue& name : value.items()) add(name);
  } else {
    add(value);
  }
  return modes;
}

std::vector<PoolingMode> ReadBooleans(JsonMembers& members) {
  std::vector<PoolingMode> modes;
  for (const ModeName& known : kModes) {
    if (members.Bool(known.boolean, false)) modes.push_back(known.mode);
  }
  if (modes.empty()) modes.push_back(PoolingMode::kMean);
  return modes;
}

}  // namespace

std::string PoolingText(const std::vector<PoolingMode>& modes) {
  std::string text;
  for (const PoolingMode mode : modes) {
    text += (text.empty() ? "" : " + ") + std::string(PoolingModeName(mode));
  }
  return text;
}

Result<std::vector<PoolingMode>> ReadPoolingConfig(const std::string& path, size_t d_model,
                                                   const FolderReading& reading) {
  const std::string file = Within(path, "config.json");
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (!json.has_value()) {
    return Status(ErrorCode::kNotFound, "modules.json names a Pooling module in '" + path +
                                            "', but there is no " + reading.folder.PathOf(file));
  }
  JsonMembers members(*json, file);
  // Where both spellings are there, the new one counts.
  std::vector<PoolingMode> modes = ReadBooleans(members);
  if (members.Has("pooling_mode")) modes = ReadNames(members);
  for (const std::string_view key : {"word_embedding_dimension", "embedding_dimension"}) {
    const std::optional<size_t> width = members.OptionalSize(key);
    if (width && *width != d_model) {
      members.Refuse(key, std::to_string(d_model) + ", the width of the model's hidden states");
    }
  }
  if (!members.Bool("include_prompt", true)) {
    members.Refuse("include_prompt", "true: encore has no pooling without the prompt's tokens");
  }
  ENCORE_RETURN_IF_ERROR(Finish(members, reading));
  reading.Tell("pooling", PoolingText(modes), file);
  return modes;
}

}  // namespace encore::internal
