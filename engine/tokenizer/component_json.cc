// SPDX-License-Identifier: Apache-2.0
//
// What the readers of components share, and the reader of "model".

#include "engine/tokenizer/component_json.h"

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {

Status RefuseUnread(const JsonMembers& members) {
  if (!members.ok()) return members.status();
  const std::vector<std::string> keys = members.Unread();
  if (keys.empty()) return {};
  return Status(ErrorCode::kUnsupported, members.where() + ": has a member " + Quoted(keys[0]) +
                                             ", which encore does not support");
}

Status UnknownType(const std::string& where, const std::string& type, std::string_view known) {
  return Status(ErrorCode::kUnsupported,
                where + ": type is " + Quoted(type) + "; encore supports " + std::string(known));
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

// ---- tokenizer.json: "model", and which one it is ---------------------------------------------

namespace {

// Files of old have no type, but members of their own; empty if these fit none.
std::string TypeByMembers(const JsonValue& json) {
  const auto has = [&](std::string_view key) { return json.Find(key) != nullptr; };
  if (has("merges")) return "BPE";
  if (has("unk_id")) return "Unigram";
  if (has("continuing_subword_prefix") && has("max_input_chars_per_word")) return "WordPiece";
  return "";
}

}  // namespace

Status ReadVocabulary(const JsonValue& json, const std::string& where, Vocabulary* vocabulary) {
  vocabulary->reserve(json.members().size());
  for (const auto& [token, id] : json.members()) {
    uint64_t number = 0;
    if (!id.AsUnsigned(&number) || number > ByteTrie::kMaxValue) {
      return InvalidArgument(where + ": vocab has " + Quoted(token) + " with id " + id.Described() +
                             "; wanted a whole number of at most " +
                             std::to_string(ByteTrie::kMaxValue));
    }
    vocabulary->emplace_back(token, static_cast<uint32_t>(number));
  }
  return {};
}

Result<int32_t> UnknownId(const TokenTable& tokens, const std::string& token,
                          const std::string& where) {
  if (const std::optional<int32_t> id = tokens.Id(token)) return *id;
  return InvalidArgument(where + ": the unknown token " + Quoted(token) +
                         " is not in the vocabulary");
}

std::string ModelType(const JsonValue& json) {
  const std::string& type = json["type"].text();
  return type.empty() ? TypeByMembers(json) : type;
}

Status ReadModel(const JsonValue& json, const std::string& file, TokenizerParts* parts,
                 const JsonValue* over, TableReader* packed) {
  const std::string where = file + ": model";
  JsonMembers members(json, where, over);
  std::string type = members.String("type", "");
  if (!members.ok()) return members.status();
  const bool typeless = type.empty();
  if (typeless) type = TypeByMembers(json);
  const size_t place = parts->decisions.size();
  Status status;
  if (type == "WordPiece") {
    status = ReadWordPiece(&members, parts, packed);
  } else if (type == "BPE") {
    status = ReadBpe(&members, parts, packed);
  } else if (type == "Unigram") {
    status = ReadUnigram(&members, parts, packed);
  } else {
    return UnknownType(where, type, "WordPiece, BPE, Unigram");
  }
  if (!status.ok()) return status;
  if (parts->byte_level && type != "BPE") {
    return Status(ErrorCode::kUnsupported, where + ": type is " + Quoted(type) +
                                               ", and the pre-tokenizer is ByteLevel; encore has "
                                               "that with BPE");
  }
  parts->decisions.insert(
      parts->decisions.begin() + static_cast<std::ptrdiff_t>(place),
      {"model", type + ", " + std::to_string(parts->model->token_count()) + " tokens",
       where + (typeless ? " (without a type)" : "")});
  return {};
}

}  // namespace encore::internal
