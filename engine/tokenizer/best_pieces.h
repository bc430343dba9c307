// SPDX-License-Identifier: Apache-2.0
//
// The likeliest way to cut a text into pieces (Kudo 2018, arXiv:1804.10959): the one whose scores
// have the largest sum, by Viterbi's algorithm.

#ifndef ENCORE_ENGINE_TOKENIZER_BEST_PIECES_H_
#define ENCORE_ENGINE_TOKENIZER_BEST_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/model.h"
#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {

// Fills scratch->pieces with the spans of the pieces, from the last one to the first, counted from
// `begin`. Scores are by the trie's ids. A character that is no piece counts as unk_id, with
// unk_score, and those in a row are one piece. Each sum is rounded to Sum; of equal sums the first
// stays. Wants the default rounding mode. Throws std::length_error from 4 GiB on.
template <typename Sum, typename Score>
void FindBestPieces(std::string_view text, size_t begin, const ByteTrie& trie,
                    const std::vector<Score>& scores, uint32_t unk_id, Score unk_score,
                    ModelScratch* scratch) {
  if (text.size() > std::numeric_limits<uint32_t>::max()) {
    throw std::length_error("a text of too many bytes");
  }
  std::vector<ModelScratch::Best>& best = scratch->best;
  best.assign(text.size() + 1, {0, 0, 0});
  const char* const end = text.data() + text.size();
  for (size_t at = 0; at < text.size();) {
    const double until_here = best[at].score;
    const size_t character = Utf8Length(text[at]);
    const auto offer = [&](size_t size, uint32_t id, Score score) {
      ModelScratch::Best& target = best[at + size];
      const auto sum = static_cast<Sum>(score + until_here);
      if (target.size != 0 && !(sum > target.score)) return;
      target = {sum, id, static_cast<uint32_t>(size)};
    };
    bool alone = false;  // the character is a piece
    trie.ForEachPrefix(text.data() + at, end, [&](size_t size, uint32_t id) {
      alone = alone || size == character;
      offer(size, id, scores[id]);
    });
    if (!alone) offer(character, unk_id, unk_score);
    at += character;
  }

  std::vector<Span>& pieces = scratch->pieces;
  pieces.clear();
  bool unknown_behind = false;
  for (size_t last = text.size(); last > 0;) {
    const ModelScratch::Best& piece = best[last];
    const bool unknown = piece.id == unk_id;
    if (unknown && unknown_behind) {
      pieces.back().begin = begin + last - piece.size;
    } else {
      pieces.push_back({begin + last - piece.size, begin + last});
    }
    unknown_behind = unknown;
    last -= piece.size;
  }
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_BEST_PIECES_H_
