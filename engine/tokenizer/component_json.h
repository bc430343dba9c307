// SPDX-License-Identifier: Apache-2.0
//
// The components of tokenizer.json: each reads every field of its object and refuses what encore
// does not support.
//
// Functions append to `parts` and its decisions. kUnsupported names an unknown component,
// kInvalidArgument or kCorruptData a field, what was found and what was wanted; errors start with
// `file`. They throw std::bad_alloc.

#ifndef ENCORE_ENGINE_TOKENIZER_COMPONENT_JSON_H_
#define ENCORE_ENGINE_TOKENIZER_COMPONENT_JSON_H_

#include <functional>
#include <string>

#include "encore/status.h"
#include "engine/io/json_members.h"
#include "engine/io/json_value.h"
#include "engine/tokenizer/pattern.h"
#include "engine/tokenizer/token_table.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1::internal {

// An error for a member that was not read.
Status RefuseUnread(const JsonMembers& members);
// "FILE: WHAT has type 'X'; encore has A, B".
Status UnknownType(const std::string& where, const std::string& type, std::string_view known);
// Reads a component by read(type, members), or each of a Sequence, which has them in its member
// `list`. `where` is the component's.
using ComponentReader = std::function<Status(const std::string& type, JsonMembers* members)>;
Status ReadComponent(const JsonValue& json, const std::string& where, const std::string& list,
                     const ComponentReader& read);

// normalizer_json.cc; null is none. `lowercase`: see TokenizerOptions.
Status ReadNormalizer(const JsonValue& json, const std::string& file, bool lowercase,
                      TokenizerParts* parts);
// pre_tokenizer.cc; null is none. And of the object of type Metaspace (metaspace.cc).
Status ReadPreTokenizer(const JsonValue& json, const std::string& file, TokenizerParts* parts);
void ReadMetaspace(JsonMembers* members, TokenizerParts* parts);
// After the pre-tokenizer. Members of `over`, unless null, replace the model's. With `packed` the
// vocabulary and merges are not read: the tables are what Model::Put has written. kCorruptData if
// they are not.
Status ReadModel(const JsonValue& json, const std::string& file, TokenizerParts* parts,
                 const JsonValue* over = nullptr, TableReader* packed = nullptr);
// The model's type, which older files show by their members; empty if it is unknown.
std::string ModelType(const JsonValue& json);
// The model's object by type: word_piece.cc, bpe_create.cc, unigram.cc.
Status ReadWordPiece(JsonMembers* members, TokenizerParts* parts, TableReader* packed);
Status ReadBpe(JsonMembers* members, TokenizerParts* parts, TableReader* packed);
Status ReadUnigram(JsonMembers* members, TokenizerParts* parts, TableReader* packed);
inline Status DamagedTables(const std::string& where) {
  return Status(ErrorCode::kCorruptData, where + ": the packed tables are damaged");
}
// The entries of "vocab" where it is an object. `where` is the model's.
Status ReadVocabulary(const JsonValue& json, const std::string& where, Vocabulary* vocabulary);
// The id of the unknown token.
Result<int32_t> UnknownId(const TokenTable& tokens, const std::string& token,
                          const std::string& where);
// template_json.cc; null is none. After the model and the added tokens.
Status ReadPostProcessor(const JsonValue& json, const std::string& file, TokenizerParts* parts);

// {"String": ...} or {"Regex": ...} under "pattern".
Result<Pattern> ReadPattern(JsonMembers* members);

// The decisions about whichever template there is.
void DescribeTemplate(const std::string& source, TokenizerParts* parts);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_COMPONENT_JSON_H_
