// SPDX-License-Identifier: Apache-2.0
//
// What the readers of components share.

#include "engine/tokenizer/component_json.h"

#include "engine/base/quoted.h"

namespace encore::inline v0_1::internal {

Status RefuseUnread(const JsonMembers& members) {
  if (!members.ok()) return members.status();
  const std::vector<std::string> keys = members.Unread();
  if (keys.empty()) return {};
  return Status(ErrorCode::kUnsupported,
                members.where() + ": has a member " + Quoted(keys[0]) + ", which encore has not");
}

Status UnknownType(const std::string& where, const std::string& type, std::string_view known) {
  return Status(ErrorCode::kUnsupported,
                where + ": type is " + Quoted(type) + "; encore has " + std::string(known));
}

bool RequiredBool(JsonMembers* members, std::string_view key) {
  const std::optional<bool> value = members->OptionalBool(key);
  if (!value) members->Refuse(key, "true or false");
  return value.value_or(false);
}

std::optional<Pattern> ReadPattern(JsonMembers* members, std::string_view key, Status* status) {
  const JsonValue& json = members->RequiredObject(key);
  if (!members->ok()) return {};
  JsonMembers pattern(json, members->where() + ": " + std::string(key));
  if (pattern.Has("String")) {
    const std::string text = pattern.RequiredString("String");
    if (pattern.ok() && text.empty()) pattern.Refuse("String", "at least one character");
    *status = RefuseUnread(pattern);
    if (!status->ok()) return {};
    return Pattern::Literal(text);
  }
  const std::string regex = pattern.RequiredString("Regex");
  *status = RefuseUnread(pattern);
  if (!status->ok()) return {};
  std::optional<Pattern> found = Pattern::Regex(regex);
  if (!found) {
    *status = Status(ErrorCode::kUnsupported,
                     pattern.where() + ": Regex is " + Quoted(regex) +
                         "; encore has the published ones of GPT-2, Llama 3, Qwen 2, CLIP, T5");
  }
  return found;
}

std::string OneCharacter(JsonMembers* members, std::string_view key) {
  std::string text = members->RequiredString(key);
  if (members->ok() && (text.empty() || text.size() != Utf8Length(text[0]))) {
    members->Refuse(key, "one character");
  }
  return text;
}

}  // namespace encore::internal
