// SPDX-License-Identifier: Apache-2.0
//
// Byte-pair encoding of words. Texts that become one token are looked up; short words are merged by
// looking for the best pair again and again, long ones with a heap.

#include "engine/tokenizer/bpe.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace encore::inline v0_1::internal {
namespace {

constexpr uint32_t kNone = MergeTable::kNone;
// Words of more symbols go through a heap: from here on it is faster.
constexpr size_t kFewSymbols = 48;

}  // namespace

uint32_t Bpe::SymbolOf(std::string_view character, bool first, bool last,
                       std::string* spelled) const {
  if (settings_.bytes) {
    return byte_symbols_[(first ? 1u : 0u) + (last ? 2u : 0u)]
                        [static_cast<unsigned char>(character[0])];
  }
  const bool prefix = !first && !settings_.continuing_subword_prefix.empty();
  const bool suffix = last && !settings_.end_of_word_suffix.empty();
  if (prefix || suffix) {
    spelled->clear();
    if (prefix) *spelled += settings_.continuing_subword_prefix;
    *spelled += character;
    if (suffix) *spelled += settings_.end_of_word_suffix;
    character = *spelled;
  }
  const std::optional<int32_t> id = tokens_.Id(character);
  return id ? static_cast<uint32_t>(*id) : kNone;
}

void Bpe::Spell(std::string_view word, ModelScratch* scratch) const {
  Symbols& symbols = scratch->symbols;
  symbols.clear();
  const auto add = [&](uint32_t id, size_t size) { symbols.push_back({id, kNone, size, 0, 0}); };
  size_t unknown = 0;  // bytes of the unknown token that is not yet added
  const auto add_unknown = [&] {
    if (unknown != 0) add(unk_id_, unknown);
    unknown = 0;
  };
  size_t size = 0;
  for (size_t at = 0; at < word.size(); at += size) {
    size = settings_.bytes ? 1 : Utf8Length(word[at]);
    const std::string_view character = word.substr(at, size);
    const size_t spelled_size = settings_.bytes ? SpelledSize(word[at]) : size;
    const bool first = at == 0, last = at + size == word.size();
    const uint32_t id = SymbolOf(character, first, last, &scratch->spelled);
    if (id != kNone) {
      add_unknown();
      add(id, spelled_size);
      continue;
    }
    if (settings_.byte_fallback) {
      // The bytes of what was looked for, prefix and suffix included. An unknown token before them
      // comes behind them, as `tokenizers` has it.
      std::string& spelled = scratch->spelled;
      spelled.clear();
      if (!first) spelled += settings_.continuing_subword_prefix;
      spelled += character;
      if (last) spelled += settings_.end_of_word_suffix;
      const auto fallback = [&](char c) { return fallback_[static_cast<unsigned char>(c)]; };
      if (std::none_of(spelled.begin(), spelled.end(), [&](char c) { return fallback(c) < 0; })) {
        for (const char c : spelled) add(static_cast<uint32_t>(fallback(c)), 1);
        continue;
      }
    }
    if (unk_id_ == kNone) continue;
    if (!settings_.fuse_unk) add_unknown();
    unknown += spelled_size;
  }
  add_unknown();
}

void Bpe::MergeFew(Symbols* symbols) const {
  if (symbols->empty()) return;
  ModelScratch::Symbol* const first = symbols->data();
  size_t count = symbols->size();
  const auto rank_of = [&](size_t i) {
    first[i].rank = i + 1 < count ? merges_.Rank(first[i].id, first[i + 1].id) : kNone;
  };
  for (size_t i = 0; i < count; ++i) rank_of(i);
  while (true) {
    size_t best = 0;
    for (size_t i = 1; i < count; ++i) best = first[i].rank < first[best].rank ? i : best;
    if (first[best].rank == kNone) break;
    first[best].id = merges_.Result(first[best].rank);
    first[best].size += first[best + 1].size;
    std::copy(first + best + 2, first + count, first + best + 1);
    --count;
    rank_of(best);
    if (best != 0) rank_of(best - 1);
  }
  symbols->resize(count);
}

void Bpe::MergeMany(ModelScratch* scratch) const {
  Symbols& symbols = scratch->symbols;
  if (symbols.size() >= kNone) throw std::length_error("a word of too many characters");
  const auto count = static_cast<uint32_t>(symbols.size());
  // The pair that merges first has the least number: its rank, then its place.
  std::vector<uint64_t>& heap = scratch->merges;
  heap.clear();
  const auto entry = [&](uint32_t place) { return uint64_t{symbols[place].rank} << 32 | place; };
  const auto rank_of = [&](uint32_t place) {
    const uint32_t next = symbols[place].next;
    symbols[place].rank = next < count ? merges_.Rank(symbols[place].id, symbols[next].id) : kNone;
    return symbols[place].rank != kNone;
  };
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i].previous = i - 1;
    symbols[i].next = i + 1;
    if (rank_of(i)) heap.push_back(entry(i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto push = [&](uint32_t place) {
    if (!rank_of(place)) return;
    heap.push_back(entry(place));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const uint64_t top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const auto place = static_cast<uint32_t>(top);
    ModelScratch::Symbol& symbol = symbols[place];
    if (symbol.rank != top >> 32) continue;  // one of its two is another by now
    ModelScratch::Symbol& gone = symbols[symbol.next];
    symbol.id = merges_.Result(symbol.rank);
    symbol.size += gone.size;
    gone.rank = kNone;
    gone.size = 0;
    symbol.next = gone.next;
    if (symbol.next < count) symbols[symbol.next].previous = place;
    push(place);
    if (symbol.previous < count) push(symbol.previous);
  }
  symbols.erase(std::remove_if(symbols.begin(), symbols.end(),
                               [](const ModelScratch::Symbol& symbol) { return symbol.size == 0; }),
                symbols.end());
}

size_t Bpe::CutSize(std::string_view word) const {
  return mark_starts_words_ ? InnerMark(word) : word.size();
}

void Bpe::TokenizeWord(TextView text, Span word, ModelScratch* scratch, TokenList* out) const {
  const std::string_view bytes = text.Part(word).text();
  const ByteTrie::Match whole = words_.Longest(bytes.data(), bytes.data() + bytes.size());
  if (whole.size == bytes.size()) {
    out->ids.push_back(static_cast<int32_t>(whole.value));
    if (text.origin != nullptr) out->origins.push_back(text.Origin(word));
    return;
  }
  Spell(bytes, scratch);
  if (scratch->symbols.size() <= kFewSymbols) {
    MergeFew(&scratch->symbols);
  } else {
    MergeMany(scratch);
  }
  for (const ModelScratch::Symbol& symbol : scratch->symbols) {
    out->ids.push_back(static_cast<int32_t>(symbol.id));
  }
  if (text.origin != nullptr) PutOrigins(text, word, scratch->symbols, out);
}

void Bpe::PutOrigins(TextView text, Span word, const Symbols& symbols, TokenList* out) const {
  size_t byte = word.begin;
  size_t start = 0;  // of that byte in the word as it is spelled
  // The byte at a place of the spelled word. Bytes of a prefix or suffix that fell back stand
  // behind the last one, and have no place of their own.
  const auto byte_at = [&](size_t place) {
    if (!settings_.bytes) return std::min(word.begin + place, word.end - 1);
    for (; byte + 1 < word.end; ++byte) {
      const size_t next = start + SpelledSize(text.data[byte]);
      if (next > place) break;
      start = next;
    }
    return byte;
  };
  // Tokens are adjacent as `tokenizers` counts, also where unknown characters between them
  // are left out: offsets after these are then too small.
  size_t at = 0;
  for (const ModelScratch::Symbol& symbol : symbols) {
    const size_t begin = byte_at(at);
    at += symbol.size;
    out->origins.push_back(text.Origin({begin, byte_at(at - 1) + 1}));
  }
}

void Bpe::Tokenize(TextView text, const std::vector<Span>& words, ModelScratch* scratch,
                   TokenList* out) const {
  for (const Span& word : words) {
    if (!mark_starts_words_) {
      TokenizeWord(text, word, scratch, out);
      continue;
    }
    for (size_t begin = word.begin; begin < word.end;) {
      const size_t end = begin + CutSize(text.Part({begin, word.end}).text());
      TokenizeWord(text, {begin, end}, scratch, out);
      begin = end;
    }
  }
}

}  // namespace encore::internal
