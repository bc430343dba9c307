// SPDX-License-Identifier: Apache-2.0
//
// Folders of Model2Vec (github.com/MinishLab/model2vec) without modules.json, by its own rules,
// which are not those of sentence-transformers.

#ifndef ENCORE_ENGINE_TEXT_MODEL2VEC_H_
#define ENCORE_ENGINE_TEXT_MODEL2VEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/io/folder.h"

namespace encore::inline v0_1::internal {

struct FolderReading;

size_t CharactersOf(std::string_view utf8);

// config.json of such a folder.
struct Model2VecConfig {
  size_t max_length = 512;  // tokens; 0: no limit
  bool normalize = false;
};
// Nothing unless model_type is "model2vec".
Result<std::optional<Model2VecConfig>> ReadModel2Vec(const FolderReading& reading);

// How texts become tokens, beside the tokenizer.
struct Model2VecTexts {
  size_t characters = 0;           // of a text for each token that it may have
  std::optional<int32_t> unknown;  // tokens of this id are left out
};
// The median length of the tokens in characters, and the unknown token of tokenizer.json's model.
// `rows`: how many the table has, which must be one a token; nothing where it has a mapping.
Result<Model2VecTexts> ReadModel2VecTexts(const Folder& folder, const Tokenizer& tokenizer,
                                          std::optional<size_t> rows);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_MODEL2VEC_H_
