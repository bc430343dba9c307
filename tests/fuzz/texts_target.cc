// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as texts, through tokenizers that are right: every promise holds with every combination
// of options. The input's first four bytes say which tokenizer, which options, the maximum length
// and where a pair is divided.

#include <cstddef>
#include <string_view>

#include "encore/tokenizer.h"
#include "tests/fuzz/check_encode.h"
#include "tests/fuzz/fixed_tokenizers.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {

void RunTexts(std::string_view input) {
  constexpr size_t kHead = 4;
  if (input.size() < kHead) return;
  const auto head = [input](size_t i) { return static_cast<unsigned char>(input[i]); };
  const auto flag = [&head](unsigned bit) { return (head(1) >> bit & 1u) != 0; };
  const Tokenizer& tokenizer = FixedTokenizers()[head(0) % FixedTokenizers().size()];
  TokenizeOptions options;
  options.add_special_tokens = !flag(0);
  options.plain_text = flag(1);
  options.offsets = flag(2);
  options.on_invalid_utf8 = flag(3) ? OnInvalidUtf8::kError : OnInvalidUtf8::kReplace;
  options.on_long = flag(4) ? OnLong::kError : OnLong::kCut;
  options.max_length = head(2) % 40;
  const std::string_view text = input.substr(kHead);
  if (!flag(5)) return CheckEncode(tokenizer, {text, std::nullopt}, options);
  const size_t first = text.size() * head(3) / 255;
  CheckEncode(tokenizer, {text.substr(0, first), text.substr(first)}, options);
}

}  // namespace encore::fuzz
