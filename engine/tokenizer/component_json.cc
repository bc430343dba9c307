// SPDX-License-Identifier: Apache-2.0
//
// What the readers of components share.

#include "engine/tokenizer/component_json.h"

#include "engine/base/quoted.h"

namespace encore::internal {

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

}  // namespace encore::internal
