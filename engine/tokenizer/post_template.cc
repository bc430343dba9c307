// SPDX-License-Identifier: Apache-2.0
//
// Puts texts and special tokens together.

#include "engine/tokenizer/post_template.h"

#include <algorithm>

namespace encore::inline v0_1::internal {

size_t CountSpecial(const std::vector<TemplatePiece>& pieces) {
  return static_cast<size_t>(std::count_if(
      pieces.begin(), pieces.end(),
      [](const TemplatePiece& piece) { return piece.kind == TemplatePiece::Kind::kToken; }));
}

std::pair<size_t, size_t> LongestFirst(size_t first, size_t second, size_t limit) {
  if (first <= limit && second <= limit - first) return {first, second};
  const size_t shorter = std::min(first, second);
  const size_t half = limit / 2;
  // What the shorter and the longer text keep.
  size_t short_kept = shorter;
  size_t long_kept = limit - std::min(shorter, limit);
  if (shorter > long_kept) {
    short_kept = half;
    long_kept = limit - half;
  }
  if (first > second) return {long_kept, short_kept};
  return {short_kept, long_kept};
}

void ApplyTemplate(const std::vector<TemplatePiece>& pieces, bool with_special_tokens,
                   bool with_offsets, bool from_end, const TokenList& first, size_t first_count,
                   const TokenList& second, size_t second_count, Tokens* tokens) {
  tokens->ids.clear();
  tokens->type_ids.clear();
  tokens->offsets.clear();
  for (const TemplatePiece& piece : pieces) {
    if (piece.kind == TemplatePiece::Kind::kToken) {
      if (!with_special_tokens) continue;
      tokens->ids.push_back(piece.id);
      tokens->type_ids.push_back(piece.type_id);
      if (with_offsets) tokens->offsets.push_back({});
      continue;
    }
    const bool is_first = piece.kind == TemplatePiece::Kind::kFirst;
    const TokenList& list = is_first ? first : second;
    const size_t count = is_first ? first_count : second_count;
    const size_t begin = from_end ? list.ids.size() - count : 0;
    const int32_t* const ids = list.ids.data() + begin;
    tokens->ids.insert(tokens->ids.end(), ids, ids + count);
    tokens->type_ids.insert(tokens->type_ids.end(), count, piece.type_id);
    if (!with_offsets) continue;
    const ByteRange* const origins = list.origins.data() + begin;
    tokens->offsets.insert(tokens->offsets.end(), origins, origins + count);
  }
}

}  // namespace encore::internal
