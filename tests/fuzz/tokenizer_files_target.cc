// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a tokenizer's files: an error with a sentence, or a tokenizer that keeps its
// promises on a text. The input is tokenizer.json, vocab.txt or spiece.model,
// tokenizer_config.json, a text.

#include <optional>
#include <string_view>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/tokenizer_factory.h"
#include "tests/fuzz/check_encode.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

using internal::TokenizerFactory;

void UseTokenizer(const Result<Tokenizer>& tokenizer, std::string_view text) {
  if (!tokenizer.ok()) {
    CheckError(tokenizer.status());
    return;
  }
  CheckVocabulary(*tokenizer);
  TokenizeOptions options;
  options.on_invalid_utf8 = OnInvalidUtf8::kReplace;
  CheckEncode(*tokenizer, {"Hello w\xC3\xB3rld[SEP] <mask> \xE4\xB8\xAD don't", std::nullopt},
              options);
  options.max_length = 7;
  CheckEncode(*tokenizer, {text, "a b"}, options);
}

}  // namespace

void RunTokenizerJson(std::string_view input) {
  const std::vector<std::string_view> parts = Parts(input, 3);
  UseTokenizer(TokenizerFactory::FromJson(parts[0], {.lowercase = input.size() % 4 == 3}, parts[1]),
               parts[2]);
}

void RunVocab(std::string_view input) {
  const std::vector<std::string_view> parts = Parts(input, 3);
  UseTokenizer(
      TokenizerFactory::FromVocab(parts[0], {.lowercase = input.size() % 4 == 3}, parts[1]),
      parts[2]);
}

void RunSpiece(std::string_view input) {
  const std::vector<std::string_view> parts = Parts(input, 3);
  UseTokenizer(
      TokenizerFactory::FromSentencePiece(parts[0], {.lowercase = input.size() % 4 == 3}, parts[1]),
      parts[2]);
}

}  // namespace encore::fuzz
