// SPDX-License-Identifier: Apache-2.0
//
// The components of tokenizer.json: each reads its object, every field of it, and refuses what
// encore has not.
//
// Functions append to `parts` and its decisions. kUnsupported names a component that encore has
// not, kInvalidArgument or kCorruptData a field with what was found and wanted; sentences start
// with `file`. They throw std::bad_alloc.

#ifndef ENCORE_ENGINE_TOKENIZER_COMPONENT_JSON_H_
#define ENCORE_ENGINE_TOKENIZER_COMPONENT_JSON_H_

#include <string>

#include "encore/status.h"
#include "engine/io/json_members.h"
#include "engine/io/json_value.h"
#include "engine/tokenizer/pattern.h"
#include "engine/tokenizer/token_table.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1::internal {

// An error if a member of the object was read by nobody.
Status RefuseUnread(const JsonMembers& members);
// "FILE: WHAT has type 'X'; encore has A, B".
Status UnknownType(const std::string& where, const std::string& type, std::string_view known);
// A member that must be true or false.
bool RequiredBool(JsonMembers* members, std::string_view key);

// normalizer_json.cc; null is none. `lowercase`: see TokenizerOptions.
Status ReadNormalizer(const JsonValue& json, const std::string& file, bool lowercase,
                      TokenizerParts* parts);
// pre_tokenizer_json.cc; null is none.
Status ReadPreTokenizer(const JsonValue& json, const std::string& file, TokenizerParts* parts);
// model_json.cc; after the pre-tokenizer.
// Members of `over`, if it is not null, take the place of the model's.
Status ReadModel(const JsonValue& json, const std::string& file, TokenizerParts* parts,
                 const JsonValue* over = nullptr);
// Which model it is, by its type or, in files of old, its members; empty if that is not known.
std::string ModelType(const JsonValue& json);
// Of the model's object, by its type: bpe_create.cc, unigram.cc. `where` is the model's.
Status ReadBpe(JsonMembers* members, TokenizerParts* parts);
Status ReadUnigram(JsonMembers* members, TokenizerParts* parts);
// The entries of "vocab" where it is an object.
Status ReadVocabulary(const JsonValue& json, const std::string& where, Vocabulary* vocabulary);
// template_json.cc; null is none. After the model and the added tokens.
Status ReadPostProcessor(const JsonValue& json, const std::string& file, TokenizerParts* parts);

// {"String": ...} or {"Regex": ...} under `key`; nothing, and an error in the members' or
// `status`, for what encore has not.
std::optional<Pattern> ReadPattern(JsonMembers* members, std::string_view key, Status* status);
// A member that must be a string of one character.
std::string OneCharacter(JsonMembers* members, std::string_view key);

// BERT's template, RoBERTa's, T5's, and the decisions about whichever template there is.
void SetBertTemplate(int32_t cls, int32_t sep, PostTemplate* post);
void SetRobertaTemplate(int32_t cls, int32_t sep, PostTemplate* post);
void SetEndTemplate(int32_t eos, PostTemplate* post);
void DescribeTemplate(const std::string& source, TokenizerParts* parts);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_COMPONENT_JSON_H_
