// SPDX-License-Identifier: Apache-2.0
//
// Special tokens around a text or a pair of texts, and the type ids of all tokens. Also
// how much of the texts is left where the result must not be too long.

#ifndef ENCORE_ENGINE_TOKENIZER_POST_TEMPLATE_H_
#define ENCORE_ENGINE_TOKENIZER_POST_TEMPLATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/model.h"

namespace encore::inline v0_1::internal {

// One piece of a template.
struct TemplatePiece {
  enum class Kind : uint8_t { kToken, kFirst, kSecond };
  Kind kind = Kind::kToken;
  int32_t id = 0;  // of kToken
  uint8_t type_id = 0;
  bool once = false;  // of kToken: left out behind a text whose last token it is
};

// Whether a token's offsets include spaces at its ends.
enum class OffsetTrim : uint8_t {
  kNone,
  kAllSpaces,       // they are not
  kKeepFirstSpace,  // only one in front of the text's first token, which may have been put there
};

struct PostTemplate {
  // Each text occurs exactly once. Without a template: the texts alone.
  std::vector<TemplatePiece> single = {{TemplatePiece::Kind::kFirst, 0, 0}};
  std::vector<TemplatePiece> pair = {{TemplatePiece::Kind::kFirst, 0, 0},
                                     {TemplatePiece::Kind::kSecond, 0, 1}};
  OffsetTrim trim = OffsetTrim::kNone;
};

// The template "FIRST text LAST", and "FIRST text LAST BETWEEN second text LAST" of pairs, with
// those tokens that there are. From BETWEEN on the type id is `second_type`.
void SetTemplate(std::optional<int32_t> first, std::optional<int32_t> between,
                 std::optional<int32_t> last, uint8_t second_type, PostTemplate* post);

// Tokens that the template adds.
size_t CountSpecial(const std::vector<TemplatePiece>& pieces);

// How many tokens of two texts stay where `limit` may: the longer one gives until both are equal,
// then the first gets half of the limit and the second what is left, and if the second was the
// shorter one, the other way round. The "longest_first" of `tokenizers`, from the right.
std::pair<size_t, size_t> LongestFirst(size_t first, size_t second, size_t limit);

// Fills in ids, type ids, the range of the second text and, if asked for, offsets, from the first
// tokens of each text, with `from_end` from the last ones. Throws std::bad_alloc.
void ApplyTemplate(const std::vector<TemplatePiece>& pieces, bool with_special_tokens,
                   bool with_offsets, bool from_end, const TokenList& first, size_t first_count,
                   const TokenList& second, size_t second_count, Tokens* tokens);

// Takes spaces at the ends of a token away from where it came from, as the post-processors
// ByteLevel and RobertaProcessing do.
// `original`: the text that the origin is a part of. `token`: as the vocabulary spells it, or the
// text of an added token. `first`: it is the text's first token.
void TrimOrigin(OffsetTrim trim, std::string_view original, std::string_view token, bool first,
                ByteRange* origin);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_POST_TEMPLATE_H_
