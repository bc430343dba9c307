// SPDX-License-Identifier: Apache-2.0
//
// Unpacks the generated tables.

#include "engine/tokenizer/unicode.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/once.h"
#include "engine/tokenizer/unicode_data.h"
#include "engine/tokenizer/utf8.h"

namespace encore::inline v0_1::internal {
namespace {

// Hangul syllables are decomposed by arithmetic (The Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr char32_t kVowelCount = 21, kTrailingCount = 28, kSyllableCount = 11172;

}  // namespace

// A value for each code point. Most blocks have one value throughout, which is all that is stored
// of them: every value by itself would be some megabytes, which take longer to get than to fill.
template <typename T>
class Unicode::Draft {
 public:
  explicit Draft(T value = {}) : rest_(kAllBlocks, value), places_(kAllBlocks, kNone) {}

  T& operator[](char32_t c) {
    uint32_t& place = places_[c >> kBlockBits];
    if (place == kNone) {
      place = static_cast<uint32_t>(values_.size());
      values_.resize(values_.size() + kBlockSize, rest_[c >> kBlockBits]);
    }
    return values_[place + (c & (kBlockSize - 1))];
  }
  // Of blocks in which no code point has a value of its own yet, or only some before `begin`.
  void Fill(char32_t begin, char32_t end, T value) {
    while (begin < end) {
      if (begin % kBlockSize == 0 && end - begin >= kBlockSize) {
        rest_[begin >> kBlockBits] = value;
        begin += kBlockSize;
      } else {
        (*this)[begin++] = value;
      }
    }
  }
  // The values of a block; null if there is one for all, which is *value then.
  const T* Block(size_t block, T* value) const {
    *value = rest_[block];
    return places_[block] == kNone ? nullptr : values_.data() + places_[block];
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  std::vector<T> rest_;           // of blocks without a place
  std::vector<uint32_t> places_;  // of a block in values_
  std::vector<T> values_;
};

// The sizes of arrays are those of the data: ENCORE_CHECK finds data that was made anew.
template <typename T, size_t kBlocks>
void Unicode::TwoStage<T, kBlocks>::Pack(const Draft<T>& draft) {
  std::array<T, kBlockSize> uniform = {};
  uint32_t of_uniform = UINT32_MAX;  // where the last one of one value is
  size_t used = 0;
  for (size_t block = 0; block < kAllBlocks; ++block) {
    T value = {};
    const T* values = draft.Block(block, &value);
    const bool is_uniform = values == nullptr;
    if (is_uniform) {
      if (of_uniform != UINT32_MAX && uniform[0] == value) {
        blocks_[block] = of_uniform;
        continue;
      }
      uniform.fill(value);
      values = uniform.data();
    }
    size_t place = 0;
    while (place < used && !std::equal(values, values + kBlockSize, values_.data() + place)) {
      place += kBlockSize;
    }
    if (place == used) {
      ENCORE_CHECK(used < values_.size());
      std::copy_n(values, kBlockSize, values_.data() + used);
      used += kBlockSize;
    }
    blocks_[block] = static_cast<uint32_t>(place);
    if (is_uniform) of_uniform = blocks_[block];
  }
}

uint16_t Unicode::PartList::Append(std::span<const uint32_t> parts) {
  ENCORE_CHECK(parts.size() < values.size() - size);
  const size_t place = size;
  values[size++] = static_cast<uint32_t>(parts.size());
  for (const uint32_t part : parts) values[size++] = part;
  return static_cast<uint16_t>(place);
}

Unicode::Unicode() {
  Draft<uint16_t> properties;
  Draft<uint16_t> patterns;
  ForEachUnicodeClass(kUnicodeClasses, [&](char32_t begin, char32_t end, uint32_t both) {
    properties.Fill(begin, end, static_cast<uint16_t>(both));
    patterns.Fill(begin, end, static_cast<uint16_t>(both >> 16));
  });
  patterns_.Pack(patterns);

  Draft<uint16_t> places;
  std::vector<char32_t> composed;
  ForEachUnicodeMapping(kUnicodeDecompositions, [&](char32_t c, std::span<const uint32_t> parts) {
    properties[c] |= kDecomposes;
    places[c] = parts_.Append(parts);
    if ((PatternProperties(c) & kComposes) != 0) composed.push_back(c);
  });
  decomposition_.Pack(places);
  for (char32_t c = kSyllables; c < kSyllables + kSyllableCount; ++c) properties[c] |= kDecomposes;

  Draft<int32_t> lower;
  ForEachUnicodeMapping(kUnicodeLowercase, [&](char32_t c, std::span<const uint32_t> parts) {
    properties[c] |= kHasLower;
    lower[c] = static_cast<int32_t>(parts[0] - c);
  });
  properties_.Pack(properties);
  lower_.Pack(lower);

  places = Draft<uint16_t>(parts_.Append({}));
  ForEachUnicodeMapping(kUnicodeCompatibility, [&](char32_t c, std::span<const uint32_t> parts) {
    places[c] = parts_.Append(parts);
  });
  compatibility_.Pack(places);
  MakeCompositions(composed);
}

// A character composes of the one that its other parts compose to, and its last part. Fewer parts
// come first, so that those are known.
void Unicode::MakeCompositions(const std::vector<char32_t>& composed) {
  for (size_t size = 2; size <= Decomposition().parts.size(); ++size) {
    for (const char32_t c : composed) {
      const Decomposition whole = Decompose(c);
      if (whole.size != size) continue;
      char32_t first = whole.parts[0];
      for (size_t part = 1; part + 1 < size; ++part) first = Compose(first, whole.parts[part]);
      const uint64_t pair = uint64_t{first} << 32 | whole.parts[size - 1];
      compositions_[PlaceOf(pair)] = {pair, c};
    }
  }
}

char32_t Unicode::Compose(char32_t first, char32_t second) const {
  const char32_t leading = first - kLeading, vowel = second - kVowels;
  if (leading < kSyllableCount / (kVowelCount * kTrailingCount) && vowel < kVowelCount) {
    return kSyllables + (leading * kVowelCount + vowel) * kTrailingCount;
  }
  const char32_t syllable = first - kSyllables, trailing = second - kTrailing;
  if (syllable < kSyllableCount && syllable % kTrailingCount == 0 &&
      trailing - 1 < kTrailingCount - 1) {
    return first + trailing;
  }
  return compositions_[PlaceOf(uint64_t{first} << 32 | second)].composed;
}

const Unicode& Unicode::Get() {
  static constinit Once<Unicode> unicode;
  return unicode.Get([] { return Unicode(); });
}

Decomposition Unicode::Decompose(char32_t c) const {
  const char32_t syllable = c - kSyllables;
  if (syllable < kSyllableCount) {
    const char32_t trailing = syllable % kTrailingCount;
    return {{kLeading + syllable / (kVowelCount * kTrailingCount),
             kVowels + syllable / kTrailingCount % kVowelCount, kTrailing + trailing},
            trailing == 0 ? size_t{2} : size_t{3}};
  }
  const std::span<const uint32_t> parts = parts_.At(decomposition_.At(c));
  Decomposition result = {{}, parts.size()};
  std::copy(parts.begin(), parts.end(), result.parts.begin());
  return result;
}

std::string_view WithoutWhiteStart(std::string_view text) {
  const char* const end = text.data() + text.size();
  const char* at = text.data();
  for (const char* next = at; next < end && Is(NextCodePoint(next), kWhite);) at = next;
  return {at, static_cast<size_t>(end - at)};
}

std::string_view WithoutWhiteEnd(std::string_view text) {
  const char* end = text.data() + text.size();
  for (const char* at = end; at > text.data() && Is(PreviousCodePoint(at), kWhite);) end = at;
  return {text.data(), static_cast<size_t>(end - text.data())};
}

}  // namespace encore::internal
