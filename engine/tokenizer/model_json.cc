// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: "model". Which one it is.

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
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
                 const JsonValue* over) {
  const std::string where = file + ": model";
  JsonMembers members(json, where, over);
  std::string type = members.String("type", "");
  if (!members.ok()) return members.status();
  const bool typeless = type.empty();
  if (typeless) type = TypeByMembers(json);
  const size_t place = parts->decisions.size();
  Status status;
  if (type == "WordPiece") {
    status = ReadWordPiece(&members, parts);
  } else if (type == "BPE") {
    status = ReadBpe(&members, parts);
  } else if (type == "Unigram") {
    status = ReadUnigram(&members, parts);
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
