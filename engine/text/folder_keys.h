// SPDX-License-Identifier: Apache-2.0
//
// What the readers of sentence-transformers' files share: keys that nobody knows, and keys that
// must say nothing.

#ifndef ENCORE_ENGINE_TEXT_FOLDER_KEYS_H_
#define ENCORE_ENGINE_TEXT_FOLDER_KEYS_H_

#include <string_view>

#include "encore/status.h"
#include "engine/base/quoted.h"
#include "engine/io/json_members.h"
#include "engine/text/folder_files.h"

namespace encore::inline v0_1::internal {

// The members' own error; else each key that was not read is a decision, as sentence-transformers
// leaves unknown keys of some files alone.
inline Status FinishAsUnused(const JsonMembers& members, const FolderReading& reading) {
  for (const std::string& key : members.Unread()) {
    reading.Tell("ignored", "unknown key " + Quoted(key), members.where());
  }
  return members.status();
}

// As FinishAsUnused, but kInvalidArgument for such a key unless they are to be ignored.
inline Status Finish(const JsonMembers& members, const FolderReading& reading) {
  const std::vector<std::string> unread = members.Unread();
  if (!members.ok() || unread.empty() || reading.ignore_unknown_keys) {
    return FinishAsUnused(members, reading);
  }
  return InvalidArgument(members.where() + ": unknown key " + Quoted(unread[0]) +
                         "; it may change the result (ignore_unknown_keys lets it pass)");
}

// An error unless the member is absent, null, or the empty object or array: settings that encore
// has no use for and that mean nothing where they are empty.
inline void WantEmpty(JsonMembers& members, std::string_view key) {
  if (!members.Has(key)) return;
  const JsonValue& value = *members.Find(key);
  const bool is_list = value.is_object() || value.is_array();
  if (!is_list || !value.members().empty() || !value.items().empty()) {
    members.Refuse(key, "nothing in it");
  }
}

// A module that comes after the pooling takes the sentence's vector and gives it.
inline void WantSentenceVectors(JsonMembers& members) {
  for (const std::string_view key : {"module_input_name", "module_output_name"}) {
    if (members.String(key, "sentence_embedding") != "sentence_embedding") {
      members.Refuse(key, "'sentence_embedding'");
    }
  }
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_FOLDER_KEYS_H_
