// SPDX-License-Identifier: Apache-2.0
//
// Reads tokenizer_config.json for what the model is given.

#include "engine/text/type_ids.h"

#include <algorithm>
#include <array>
#include <optional>

namespace encore::inline v0_1::internal {
namespace {

// Classes in transformers whose model_input_names are input_ids and attention_mask; each may end in
// "Fast".
constexpr std::array<std::string_view, 6> kWithout = {
    "DistilBertTokenizer", "MPNetTokenizer",     "RobertaTokenizer",
    "XLMRobertaTokenizer", "CamembertTokenizer", "BartTokenizer",
};

bool HasTypeIds(std::string_view tokenizer_class) {
  constexpr std::string_view kFast = "Fast";
  if (tokenizer_class.ends_with(kFast)) tokenizer_class.remove_suffix(kFast.size());
  return std::find(kWithout.begin(), kWithout.end(), tokenizer_class) == kWithout.end();
}

}  // namespace

Result<bool> ReadUsesTypeIds(const std::string& path, size_t type_vocab_size,
                             const FolderReading& reading) {
  if (type_vocab_size == 0) return false;
  const std::string file = Within(path, "tokenizer_config.json");
  const Result<std::optional<JsonValue>> json = reading.folder.ReadJson(file);
  if (!json.ok()) return json.status();
  if (!json->has_value()) return true;
  JsonMembers members(**json, file);
  if (members.Has("model_input_names")) {
    const JsonValue& names = members.RequiredArray("model_input_names");
    if (!members.ok()) return members.status();
    const bool listed = std::any_of(
        names.items().begin(), names.items().end(),
        [](const JsonValue& name) { return name.is_string() && name.text() == "token_type_ids"; });
    if (!listed) reading.Tell("type ids", "all 0, as model_input_names lacks them", file);
    return listed;
  }
  const std::string tokenizer_class = members.String("tokenizer_class", "");
  if (!members.ok()) return members.status();
  const bool has = HasTypeIds(tokenizer_class);
  if (!has) reading.Tell("type ids", "all 0, as tokenizer_class is " + tokenizer_class, file);
  return has;
}

}  // namespace encore::internal
