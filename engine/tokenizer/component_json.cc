// SPDX-License-Identifier: Apache-2.0
//
// What the readers of components share.

#include "engine/tokenizer/component_json.h"

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

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

Status ReadComponent(const JsonValue& json, const std::string& where, const std::string& list,
                     const ComponentReader& read) {
  JsonMembers members(json, where);
  const std::string type = members.RequiredString("type");
  if (type == "Sequence") {
    const std::vector<JsonValue>& items = members.RequiredArray(list).items();
    const auto place = [&](size_t i) {
      return where + ": " + list + "[" + std::to_string(i) + "]";
    };
    for (size_t i = 0; i < items.size(); ++i) {
      ENCORE_RETURN_IF_ERROR(ReadComponent(items[i], place(i), list, read));
    }
  } else if (members.ok()) {
    ENCORE_RETURN_IF_ERROR(read(type, &members));
  }
  return RefuseUnread(members);
}

Result<Pattern> ReadPattern(JsonMembers* members) {
  const JsonValue& json = members->RequiredObject("pattern");
  if (!members->ok()) return members->status();
  JsonMembers pattern(json, members->where() + ": pattern");
  if (pattern.Has("String")) {
    const std::string text = pattern.RequiredString("String");
    if (text.empty()) pattern.Refuse("String", "at least one character");
    ENCORE_RETURN_IF_ERROR(RefuseUnread(pattern));
    return Pattern::Literal(text);
  }
  const std::string regex = pattern.RequiredString("Regex");
  ENCORE_RETURN_IF_ERROR(RefuseUnread(pattern));
  if (std::optional<Pattern> found = Pattern::Regex(regex)) return *std::move(found);
  return Status(ErrorCode::kUnsupported,
                pattern.where() + ": Regex is " + Quoted(regex) +
                    "; encore has the published ones of GPT-2, Llama 3, Qwen 2, CLIP, T5");
}

}  // namespace encore::internal
