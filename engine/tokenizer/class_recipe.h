// SPDX-License-Identifier: Apache-2.0
//
// What each of transformers' tokenizer classes makes itself, whatever tokenizer.json says:
// normalizer, pre-tokenizer, the model's settings, the special tokens that hold where no file names
// others, and the template.

#ifndef ENCORE_ENGINE_TOKENIZER_CLASS_RECIPE_H_
#define ENCORE_ENGINE_TOKENIZER_CLASS_RECIPE_H_

#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"
#include "engine/tokenizer/tokenizer_class.h"
#include "engine/tokenizer/tokenizer_config.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1::internal {

// The model that a class makes: "WordPiece", "BPE" or "Unigram"; empty if it takes whichever there
// is.
std::string_view ModelOf(TokenizerKind kind);
// Whether the class has a template of its own.
bool HasTemplate(TokenizerKind kind);

// Special tokens: the class's defaults, and over them the config's, in the order of
// kSpecialTokenKeys and then of the file. A token that only the class names has from_class.
std::vector<SpecialToken> NamedTokens(TokenizerKind kind, const TokenizerConfig& config);
// The content of a key's token; empty if there is none.
const std::string& ContentOf(const std::vector<SpecialToken>& named, std::string_view key);
// Tokens that the class adds where no file has extra_special_tokens.
std::vector<AddedToken> ExtraTokens(TokenizerKind kind, const TokenizerConfig& config);

// added_tokens_json.cc: the added tokens of all files, then special tokens that are none yet.
// `json` is "added_tokens" of `file`, which counts as it is unless `by_class`. After the model.
Status AddTokens(const JsonValue& json, const std::string& file, const TokenizerClass& which,
                 const TokenizerConfig& config, bool by_class, std::vector<SpecialToken>* named,
                 TokenizerParts* parts);

// Components as in tokenizer.json; only of classes with a ModelOf. `charsmap` is the Precompiled
// normalizer of tokenizer.json, or null.
JsonValue NormalizerJson(TokenizerKind kind, const TokenizerConfig& config,
                         const JsonValue& charsmap);
JsonValue PreTokenizerJson(TokenizerKind kind, const TokenizerConfig& config);
// Members of "model" that take the place of the file's. `vocab` is the file's, for classes that
// look for the unknown token in it.
JsonValue ModelJson(TokenizerKind kind, const TokenizerConfig& config,
                    const std::vector<SpecialToken>& named, const JsonValue& vocab);

// Sets the class's template, if it has one. kInvalidArgument names a token that the template needs
// and no file has.
Status SetClassTemplate(const TokenizerClass& which, const TokenizerConfig& config,
                        const std::vector<SpecialToken>& named, TokenizerParts* parts);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_CLASS_RECIPE_H_
