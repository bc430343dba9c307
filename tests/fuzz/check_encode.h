// SPDX-License-Identifier: Apache-2.0
//
// What every tokenizer promises of every text.

#ifndef ENCORE_TESTS_FUZZ_CHECK_ENCODE_H_
#define ENCORE_TESTS_FUZZ_CHECK_ENCODE_H_

#include <optional>
#include <string>
#include <string_view>

#include "encore/tokenizer.h"

namespace encore::fuzz {

struct Texts {
  std::string_view first;
  std::optional<std::string_view> second;
};

// Encodes and checks: an error where the options ask for one, and else ids of the vocabulary,
// offsets inside the texts, no more than max_length tokens, and the same tokens again, from a warm
// and a cold Tokens, whole and cut, with and without the template and offsets.
void CheckEncode(const Tokenizer& tokenizer, const Texts& texts, const TokenizeOptions& options);

// Ids, tokens and decisions of an open tokenizer agree.
void CheckVocabulary(const Tokenizer& tokenizer);

// The text with each longest invalid part replaced by U+FFFD: the decoder of the WHATWG Encoding
// Standard, apart from encore's own.
std::string ReplaceInvalid(std::string_view text);

}  // namespace encore::fuzz

#endif  // ENCORE_TESTS_FUZZ_CHECK_ENCODE_H_
