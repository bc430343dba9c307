// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json: "model".

#include <limits>

#include "engine/base/quoted.h"
#include "engine/tokenizer/component_json.h"
#include "engine/tokenizer/word_piece.h"

namespace encore::internal {
namespace {

Status ReadVocabulary(const JsonValue& json, const std::string& where, Vocabulary* vocabulary) {
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

}  // namespace

Status ReadModel(const JsonValue& json, const std::string& file, TokenizerParts* parts) {
  const std::string where = file + ": model";
  JsonMembers members(json, where);
  // Files of old have no type; what has these members is WordPiece.
  std::string type = members.String("type", "");
  const bool typeless = type.empty() && members.ok() && members.Has("continuing_subword_prefix") &&
                        members.Has("max_input_chars_per_word");
  if (typeless) type = "WordPiece";
  if (members.ok() && type != "WordPiece") return UnknownType(where, type, "WordPiece");
  const WordPieceSettings settings = {
      .unk_token = members.RequiredString("unk_token"),
      .continuing_subword_prefix = members.RequiredString("continuing_subword_prefix"),
      .max_input_chars_per_word = members.RequiredSize("max_input_chars_per_word")};
  const JsonValue& vocab = members.RequiredObject("vocab");
  if (!members.ok()) return members.status();
  Vocabulary vocabulary;
  Status read = ReadVocabulary(vocab, where, &vocabulary);
  if (!read.ok()) return read;
  Status unread = RefuseUnread(members);
  if (!unread.ok()) return unread;
  Result<std::unique_ptr<const Model>> model = WordPiece::Create(vocabulary, settings, where);
  if (!model.ok()) return model.status();
  parts->model = *std::move(model);
  parts->unk_token = settings.unk_token;
  parts->decisions.push_back(
      {"model", "WordPiece, " + std::to_string(parts->model->token_count()) + " tokens",
       where + (typeless ? " (without a type)" : "")});
  parts->decisions.push_back({"unknown token", settings.unk_token, where + ": unk_token"});
  parts->decisions.push_back({"characters of a word",
                              "at most " + std::to_string(settings.max_input_chars_per_word),
                              where + ": max_input_chars_per_word"});
  return {};
}

}  // namespace encore::internal
