// SPDX-License-Identifier: Apache-2.0
//
// From the logits of a text's tokens to entities, by the rules of transformers'
// TokenClassificationPipeline (5.23).

#ifndef ENCORE_ENGINE_TEXT_TOKEN_LABELS_H_
#define ENCORE_ENGINE_TEXT_TOKEN_LABELS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"
#include "encore/text_encoder.h"
#include "encore/tokenizer.h"
#include "engine/io/folder.h"

namespace encore::inline v0_1::internal {

// What the rules ask of a tokenizer.
struct WordRules {
  // The vocabulary marks tokens that go on a word ("##ing"): a token whose text is as long as its
  // name begins one. Else a token goes on where no space is before it or begins it.
  bool marks_words = false;
  std::optional<int32_t> unknown;  // begins a word
  // Special tokens that a text's template puts before and behind it.
  size_t before = 0;
  size_t behind = 0;
};
// Reads tokenizer.json and tokenizer_config.json.
Result<WordRules> ReadWordRules(const Folder& folder, const Tokenizer& tokenizer);

// logits [tokens, labels] of all of the text's tokens, special ones included; tokens have offsets.
std::vector<Entity> EntitiesOf(std::string_view text, const Tokens& tokens, const float* logits,
                               const std::vector<std::string>& labels, const Tokenizer& tokenizer,
                               const WordRules& rules, const LabelOptions& options);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_TOKEN_LABELS_H_
