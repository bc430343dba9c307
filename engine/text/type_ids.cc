// SPDX-License-Identifier: Apache-2.0
//
// Reads tokenizer_config.json for what the model is given.

#include "engine/text/type_ids.h"

#include <algorithm>
#include <optional>

#include "engine/base/status_macros.h"
#include "engine/tokenizer/tokenizer_class.h"

namespace encore::inline v0_1::internal {

Result<bool> ReadUsesTypeIds(const Folder& transformer, const std::string& path,
                             size_t type_vocab_size, const FolderReading& reading) {
  if (type_vocab_size == 0) return false;
  const std::string file = Within(path, "tokenizer_config.json");
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, reading.folder.ReadJson(file));
  if (json.has_value()) {
    JsonMembers members(*json, file);
    if (members.Has("model_input_names")) {
      const JsonValue& names = members.RequiredArray("model_input_names");
      if (!members.ok()) return members.status();
      const bool listed =
          std::any_of(names.items().begin(), names.items().end(), [](const JsonValue& name) {
            return name.is_string() && name.text() == "token_type_ids";
          });
      if (!listed) reading.Tell("type ids", "all 0, as model_input_names lacks them", file);
      return listed;
    }
    if (!members.ok()) return members.status();
  }
  ENCORE_ASSIGN_OR_RETURN(const TokenizerClass which, ChooseTokenizerClass(transformer));
  if (!which.type_ids) {
    reading.Tell(
        "type ids",
        "all 0, as the tokenizer's class is " + which.name +
            (which.old_type_ids ? " (transformers 4 gave a pair's second text others)" : ""),
        Within(path, which.source));
  }
  return which.type_ids;
}

}  // namespace encore::internal
