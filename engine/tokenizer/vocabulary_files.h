// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer's model from vocab.txt, or from vocab.json and merges.txt: what transformers saved
// before tokenizer.json.

#ifndef ENCORE_ENGINE_TOKENIZER_VOCABULARY_FILES_H_
#define ENCORE_ENGINE_TOKENIZER_VOCABULARY_FILES_H_

#include <string_view>

#include "encore/status.h"
#include "engine/io/json_value.h"

namespace encore::inline v0_1::internal {

// Both give an object like tokenizer.json with a "model" alone, whose settings the tokenizer's
// class adds. Errors name the file. They throw std::bad_alloc.

// A token a line, its number from 0 being the id; white space at its end is left out, and the last
// of equal lines counts. kCorruptData for bytes that are not UTF-8.
Result<JsonValue> ModelOfVocabTxt(std::string_view vocab_txt);
// `vocab_json`: an object of tokens with their ids. `merges_txt`: two tokens a line with a space
// between; lines that start with #version are left out. kCorruptData, kInvalidArgument.
Result<JsonValue> ModelOfVocabJson(std::string_view vocab_json, std::string_view merges_txt);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_VOCABULARY_FILES_H_
