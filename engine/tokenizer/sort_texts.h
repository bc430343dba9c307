// SPDX-License-Identifier: Apache-2.0
//
// Sorts texts by their bytes: a radix sort of their first eight, which needs no comparison of texts
// that are scattered in memory, then a comparison of those that are equal so far.

#ifndef ENCORE_ENGINE_TOKENIZER_SORT_TEXTS_H_
#define ENCORE_ENGINE_TOKENIZER_SORT_TEXTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

namespace encore::inline v0_1::internal {

// In the order of std::pair. Throws std::bad_alloc.
inline void SortTexts(std::vector<std::pair<std::string_view, uint32_t>>* texts) {
  if (std::is_sorted(texts->begin(), texts->end())) return;
  struct Keyed {
    uint64_t start;  // the first byte is the highest; zeros behind a short text
    size_t index;
  };
  std::vector<Keyed> keyed(texts->size());
  for (size_t i = 0; i < keyed.size(); ++i) {
    const std::string_view text = (*texts)[i].first;
    unsigned char bytes[sizeof(uint64_t)] = {};
    if (!text.empty()) std::memcpy(bytes, text.data(), std::min(sizeof bytes, text.size()));
    uint64_t start = 0;
    for (const unsigned char byte : bytes) start = start << 8 | byte;
    keyed[i] = {start, i};
  }
  // By the last of the eight bytes first, each time keeping what is there of equal ones.
  std::vector<Keyed> other(keyed.size());
  for (unsigned shift = 0; shift < 64; shift += 8) {
    const auto byte = [shift](const Keyed& k) {
      return static_cast<size_t>(k.start >> shift & 255);
    };
    std::array<size_t, 256> places = {};
    for (const Keyed& k : keyed) ++places[byte(k)];
    if (places[byte(keyed[0])] == keyed.size()) continue;
    std::exclusive_scan(places.begin(), places.end(), places.begin(), size_t{0});
    for (const Keyed& k : keyed) other[places[byte(k)]++] = k;
    keyed.swap(other);
  }
  for (auto at = keyed.begin(); at != keyed.end();) {
    const auto next =
        std::find_if(at, keyed.end(), [at](const Keyed& k) { return k.start != at->start; });
    std::sort(at, next, [texts](const Keyed& a, const Keyed& b) {
      return (*texts)[a.index] < (*texts)[b.index];
    });
    at = next;
  }
  std::vector<std::pair<std::string_view, uint32_t>> sorted(texts->size());
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = (*texts)[keyed[i].index];
  texts->swap(sorted);
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_SORT_TEXTS_H_
