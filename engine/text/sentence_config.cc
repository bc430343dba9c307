// SPDX-License-Identifier: Apache-2.0
//
// Reads config_sentence_transformers.json.

#include "engine/text/sentence_config.h"

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

void ReadPrompts(JsonMembers& members, SentenceConfig* config) {
  if (!members.Has("prompts")) return;
  const JsonValue& prompts = members.RequiredObject("prompts");
  if (!members.ok()) return;
  for (const JsonValue::Member& prompt : prompts.members()) {
    if (prompt.second.is_string()) {
      config->prompts.emplace_back(prompt.first, prompt.second.text());
    } else if (prompt.second.is_null()) {
      config->prompts.emplace_back(prompt.first, "");
    } else {
      members.Refuse("prompts", "an object of strings");
    }
  }
}

}  // namespace

const std::string* SentenceConfig::FindPrompt(std::string_view name) const {
  for (const auto& prompt : prompts) {
    if (prompt.first == name) return &prompt.second;
  }
  return nullptr;
}

Result<SentenceConfig> ReadSentenceConfig(bool has_modules, const FolderReading& reading) {
  SentenceConfig config;
  const std::string file(kSentenceConfigFile);
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (!json.has_value()) return config;
  if (!has_modules) {
    reading.Tell("ignored", "prompts and all else, as there is no modules.json", file);
    return config;
  }
  JsonMembers members(*json, file);
  ReadPrompts(members, &config);
  config.default_prompt_name = members.OptionalString("default_prompt_name");
  config.truncate_dim = members.OptionalSize("truncate_dim");
  config.activation_fn = members.OptionalString("activation_fn");
  const std::optional<std::string> similarity = members.OptionalString("similarity_fn_name");
  const std::string type = members.String("model_type", "SentenceTransformer");
  if (type != "SentenceTransformer" && type != "CrossEncoder") {
    members.Refuse("model_type", "'SentenceTransformer' or 'CrossEncoder'");
  }
  if (config.default_prompt_name && config.FindPrompt(*config.default_prompt_name) == nullptr) {
    // sentence-transformers has these two names always.
    if (*config.default_prompt_name == "query" || *config.default_prompt_name == "document") {
      config.prompts.emplace_back(*config.default_prompt_name, "");
    } else {
      members.Refuse("default_prompt_name", "a name in prompts");
    }
  }
  if (config.truncate_dim == size_t{0}) members.Refuse("truncate_dim", "at least 1");
  for (const std::string_view key : {"__version__", "requirements", "keep_in_fp32_modules"}) {
    members.Ignore(key);
  }
  ENCORE_RETURN_IF_ERROR(FinishAsUnused(members, reading));

  for (const auto& [name, text] : config.prompts) {
    const bool by_default = config.default_prompt_name == name;
    reading.Tell("prompt " + Quoted(name), Quoted(text) + (by_default ? ", the default" : ""),
                 file);
  }
  if (similarity) reading.Tell("similarity", *similarity + ", for the caller to apply", file);
  return config;
}

}  // namespace encore::internal
