// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: "model". Which one it is, and WordPiece.

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/component_json.h"
#include "engine/tokenizer/word_piece.h"

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

Status ReadWordPiece(JsonMembers* members, TokenizerParts* parts) {
  const std::string& where = members->where();
  const WordPieceSettings settings = {
      .unk_token = members->RequiredString("unk_token"),
      .continuing_subword_prefix = members->RequiredString("continuing_subword_prefix"),
      .max_input_chars_per_word = members->RequiredSize("max_input_chars_per_word")};
  const JsonValue& vocab = members->RequiredObject("vocab");
  if (!members->ok()) return members->status();
  Vocabulary vocabulary;
  ENCORE_RETURN_IF_ERROR(ReadVocabulary(vocab, where, &vocabulary));
  ENCORE_RETURN_IF_ERROR(RefuseUnread(*members));
  ENCORE_ASSIGN_OR_RETURN(parts->model, WordPiece::Create(vocabulary, settings, where));
  parts->unk_token = settings.unk_token;
  parts->Tell("unknown token", settings.unk_token, where + ": unk_token");
  parts->Tell("characters of a word",
              "at most " + std::to_string(settings.max_input_chars_per_word),
              where + ": max_input_chars_per_word");
  return {};
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

std::string ModelType(const JsonValue& json) {
  const JsonValue* const type = json.is_object() ? json.Find("type") : nullptr;
  if (type != nullptr && type->is_string()) return type->text();
  return json.is_object() ? TypeByMembers(json) : "";
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
