// SPDX-License-Identifier: Apache-2.0
//
// Byte-pair encoding: a word starts as its characters or bytes, and neighbours merge in the order
// of a list until none do (Sennrich et al. 2016, arXiv:1508.07909; of bytes as in GPT-2).

#ifndef ENCORE_ENGINE_TOKENIZER_BPE_H_
#define ENCORE_ENGINE_TOKENIZER_BPE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/status.h"
#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/model.h"

namespace encore::inline v0_1::internal {

// sentencepiece's mark of where a word starts, U+2581; and where it stands behind another character
// of a text, or the text's end.
inline constexpr std::string_view kBpeMark = "\xE2\x96\x81";
inline size_t InnerMark(std::string_view text) {
  size_t at = 0;
  while (text.substr(at).starts_with(kBpeMark)) at += kBpeMark.size();
  return std::min(text.find(kBpeMark, at), text.size());
}

// GPT-2's alphabet, in which vocabularies of bytes are spelled: every byte is a printable
// character. The byte of each character below U+0144; -1: none. Printable bytes of Latin-1 are
// themselves, the others U+0100 and on, in their order.
inline constexpr std::array<int16_t, 0x144> kBytesOfAlphabet = [] {
  std::array<int16_t, 0x144> made{};
  made.fill(-1);
  size_t next = 0x100;
  for (int16_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    made[printable ? static_cast<size_t>(byte) : next++] = byte;
  }
  return made;
}();

// How many bytes of UTF-8 a byte's character has.
inline size_t SpelledSize(char byte) { return byte >= 0x21 && byte <= 0x7E ? 1 : 2; }

// The bytes that valid text in the alphabet spells; nothing for other text.
inline std::optional<std::string> BytesSpelledBy(std::string_view text) {
  std::string bytes;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const char32_t c = NextCodePoint(at);
    if (c >= kBytesOfAlphabet.size() || kBytesOfAlphabet[c] < 0) return {};
    bytes += static_cast<char>(kBytesOfAlphabet[c]);
  }
  return bytes;
}

struct BpeSettings {
  std::optional<std::string> unk_token;   // nothing: unknown characters are left out
  std::string continuing_subword_prefix;  // of every character but a word's first
  std::string end_of_word_suffix;         // of a word's last character
  bool fuse_unk = false;                  // unknown characters in a row are one token
  bool byte_fallback = false;  // unknown characters are the tokens <0x00> to <0xFF> of their bytes
  bool ignore_merges = false;  // a word that is a token is that token
  bool bytes = false;          // the vocabulary is spelled in GPT-2's alphabet of bytes
};

// Which two tokens become which, and in what order: a hash table with open addressing. Immutable
// once filled.
class MergeTable {
 public:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  MergeTable() : MergeTable(0) {}
  // For so many merges, below kNone. Throws std::bad_alloc.
  explicit MergeTable(size_t count) {
    size_t size = kMinSize;
    while (size < count * 2) size *= 2;
    slots_.resize(size);
    SetShift();
    results_.reserve(count);
  }

  // Ranks count from 0. False if the pair is there already.
  bool Add(uint32_t left, uint32_t right, uint32_t result) {
    Slot& slot = slots_[Find(left, right)];
    if (slot.rank != kNone) return false;
    slot = {left, right, static_cast<uint32_t>(results_.size())};
    results_.push_back(result);
    return true;
  }
  // kNone: they do not merge.
  uint32_t Rank(uint32_t left, uint32_t right) const { return slots_[Find(left, right)].rank; }
  uint32_t Result(uint32_t rank) const { return results_[rank]; }
  size_t size() const { return results_.size(); }

  void Put(TableWriter* out) const {
    out->Put(slots_);
    out->Put(results_);
  }
  // What Put has written; false for other bytes: a search would not end, or a result is not below
  // `limit`.
  [[nodiscard]] bool Take(TableReader* in, size_t limit);

 private:
  static constexpr size_t kMinSize = 16;  // of slots

  struct Slot {
    uint32_t left = 0;
    uint32_t right = 0;
    uint32_t rank = kNone;
  };

  void SetShift() { shift_ = 65 - static_cast<unsigned>(std::bit_width(slots_.size())); }
  size_t Find(uint32_t left, uint32_t right) const {
    const uint64_t key = uint64_t{left} << 32 | right;
    // Fibonacci hashing: 2^64 / golden ratio.
    size_t place = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
    while (slots_[place].rank != kNone &&
           (slots_[place].left != left || slots_[place].right != right)) {
      place = (place + 1) & (slots_.size() - 1);
    }
    return place;
  }

  std::vector<Slot> slots_;  // a power of two, at most half of them full
  unsigned shift_ = 0;
  std::vector<uint32_t> results_;  // by rank
};

// What merges, in the order of merging; views that outlive Create.
using Merges = std::vector<std::pair<std::string_view, std::string_view>>;

class Bpe : public Model {
 public:
  // kInvalidArgument if a merge's token is not in the vocabulary, a merge is there twice or makes
  // nothing longer, or the unknown token is missing. Errors start with `where`. Throws
  // std::bad_alloc.
  static Result<std::unique_ptr<const Bpe>> Create(const Vocabulary& vocabulary,
                                                   const Merges& merges,
                                                   const BpeSettings& settings,
                                                   const std::string& where);
  // The same of what Put has written. kCorruptData for other bytes.
  static Result<std::unique_ptr<const Bpe>> Take(TableReader* packed, const BpeSettings& settings,
                                                 const std::string& where);

  void Tokenize(TextView text, const std::vector<Span>& words, ModelScratch* scratch,
                TokenList* out) const override;
  bool Put(TableWriter* out) const override;
  size_t merge_count() const { return merges_.size(); }

 private:
  using Symbols = std::vector<ModelScratch::Symbol>;

  explicit Bpe(const BpeSettings& settings) : settings_(settings) {}
  Status FindUnknown(const std::string& where);
  Status ReadMerges(const Merges& merges, const std::string& where);
  Status FindSymbols(const std::string& where);
  void FindWholeWords(const Vocabulary& vocabulary);

  // Appends the tokens of a word, which starts at `begin`.
  void TokenizeWord(TextView text, Span word, ModelScratch* scratch, TokenList* out) const;
  // Fills in scratch->symbols with what a word is made of before any merge.
  void Spell(std::string_view word, ModelScratch* scratch) const;
  // The symbol of a character, or of a byte; kNone if it is unknown.
  uint32_t SymbolOf(std::string_view character, bool first, bool last, std::string* spelled) const;
  // Appends the offsets of a word's symbols.
  void PutOrigins(TextView text, Span word, const Symbols& symbols, TokenList* out) const;
  void MergeFew(Symbols* symbols) const;
  void MergeMany(ModelScratch* scratch) const;
  // How many bytes may be cut off a word's start without changing its tokens.
  size_t CutSize(std::string_view word) const;

  BpeSettings settings_;
  ByteTrie words_;  // texts that become one token
  MergeTable merges_;
  uint32_t unk_id_ = MergeTable::kNone;
  bool mark_starts_words_ = false;     // merges never put something in front of a U+2581
  std::array<int32_t, 256> fallback_;  // see TokenTable::OfBytes
  // With `bytes`: of each byte; by whether it is first, and whether it is last, in a word.
  std::array<std::array<uint32_t, 256>, 4> byte_symbols_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_BPE_H_
