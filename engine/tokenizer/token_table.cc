// SPDX-License-Identifier: Apache-2.0
//
// Checks a vocabulary and keeps it.

#include "engine/tokenizer/token_table.h"

#include <algorithm>

#include "engine/base/quoted.h"
#include "engine/tokenizer/sort_texts.h"

namespace encore::inline v0_1::internal {

Result<TokenTable> TokenTable::Create(const Vocabulary& vocabulary, const std::string& where,
                                      Twice same_token) {
  TokenTable table;
  size_t bytes = 0;
  for (const auto& [token, id] : vocabulary) bytes += token.size();
  table.text_.reserve(bytes);
  table.by_id_.reserve(vocabulary.size());
  Vocabulary found;
  found.reserve(vocabulary.size());
  for (const auto& [token, id] : vocabulary) {
    table.by_id_.push_back({table.text_.size(), static_cast<uint32_t>(token.size()), id});
    table.text_ += token;
    if (!token.empty()) found.emplace_back(token, id);
  }
  const auto by_id = [](const Place& a, const Place& b) { return a.id < b.id; };
  if (!std::is_sorted(table.by_id_.begin(), table.by_id_.end(), by_id)) {  // as most files are
    std::sort(table.by_id_.begin(), table.by_id_.end(), by_id);
  }
  const auto twice =
      std::adjacent_find(table.by_id_.begin(), table.by_id_.end(),
                         [](const Place& a, const Place& b) { return a.id == b.id; });
  if (twice != table.by_id_.end()) {
    const auto text = [&](const Place& place) {
      return Quoted(table.text_.substr(place.begin, place.size));
    };
    return InvalidArgument(where + ": tokens " + text(twice[0]) + " and " + text(twice[1]) +
                           " both have id " + std::to_string(twice->id));
  }
  SortTexts(&found);
  const auto equal = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (same_token == Twice::kLastCounts) {
    found.erase(found.begin(), std::unique(found.rbegin(), found.rend(), equal).base());
  }
  const auto same = std::adjacent_find(found.begin(), found.end(), equal);
  if (same != found.end()) {
    return InvalidArgument(where + ": token " + Quoted(same->first) + " has ids " +
                           std::to_string(same[0].second) + " and " +
                           std::to_string(same[1].second) + "; wanted one");
  }
  table.trie_ = ByteTrie(std::move(found));
  return table;
}

std::string_view TokenTable::Token(int32_t id) const {
  const auto at = std::lower_bound(by_id_.begin(), by_id_.end(), id, [](const Place& a, int32_t i) {
    return static_cast<int64_t>(a.id) < i;
  });
  if (at == by_id_.end() || static_cast<int64_t>(at->id) != id) return {};
  return std::string_view(text_).substr(at->begin, at->size);
}

void TokenTable::Put(TableWriter* out) const {
  out->Put(by_id_);
  out->Put(text_);
  trie_.Put(out);
}

bool TokenTable::Take(TableReader* in) {
  if (!in->Take(&by_id_) || !in->Take(&text_)) return false;
  const bool fits = std::all_of(by_id_.begin(), by_id_.end(), [&](const Place& place) {
    return place.begin <= text_.size() && place.size <= text_.size() - place.begin &&
           place.id <= ByteTrie::kMaxValue;
  });
  const auto not_rising = [](const Place& a, const Place& b) { return a.id >= b.id; };
  return fits && std::adjacent_find(by_id_.begin(), by_id_.end(), not_rising) == by_id_.end() &&
         trie_.Take(in, id_limit());
}

std::array<int32_t, 256> TokenTable::OfBytes() const {
  std::array<int32_t, 256> ids;
  for (size_t byte = 0; byte < 256; ++byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    const std::string token = {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
    ids[byte] = Id(token).value_or(-1);
  }
  return ids;
}

}  // namespace encore::internal
