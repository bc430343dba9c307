// SPDX-License-Identifier: Apache-2.0
//
// Unpacks the generated tables.

#include "engine/tokenizer/unicode.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/once.h"
#include "engine/tokenizer/unicode_data.h"

namespace encore::inline v0_1::internal {
namespace {

// Hangul syllables are decomposed by arithmetic (The Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr char32_t kVowelCount = 21, kTrailingCount = 28, kSyllableCount = 11172;

}  // namespace

// The sizes of arrays are those of the data: ENCORE_CHECK finds data that was made anew.
template <typename T, size_t kBlocks>
void Unicode::TwoStage<T, kBlocks>::Pack(const std::vector<T>& all) {
  size_t used = 0;
  for (size_t start = 0; start < all.size(); start += kSize) {
    const T* const block = all.data() + start;
    size_t place = 0;
    while (place < used && !std::equal(block, block + kSize, values_.data() + place)) {
      place += kSize;
    }
    if (place == used) {
      ENCORE_CHECK(used < values_.size());
      std::copy_n(block, kSize, values_.data() + used);
      used += kSize;
    }
    blocks_[start / kSize] = static_cast<uint32_t>(place);
  }
}

template <size_t kRoom>
void Unicode::PartList<kRoom>::Append(const uint32_t* parts) {
  ENCORE_CHECK(parts[0] < kRoom - size);
  std::copy_n(parts, 1 + parts[0], values.data() + size);
  size += 1 + parts[0];
}

namespace {

// The classes of all code points from pairs of a number of them and a class.
std::vector<uint16_t> Unrolled(const uint32_t* runs, size_t size, const uint16_t* classes) {
  std::vector<uint16_t> all;
  for (size_t i = 0; i < size; i += 2) all.insert(all.end(), runs[i], classes[runs[i + 1]]);
  return all;
}

}  // namespace

Unicode::Unicode() {
  std::vector<uint16_t> properties = Unrolled(kUnicodeRuns, kUnicodeRunsSize, kUnicodeClasses);
  patterns_.Pack(Unrolled(kUnicodePatternRuns, kUnicodePatternRunsSize, kUnicodePatternClasses));

  std::vector<uint16_t> decomposition(kCodePoints);
  char32_t c = 0;
  for (size_t i = 0; i < kUnicodeDecompositionsSize; i += 2 + kUnicodeDecompositions[i + 1]) {
    c += kUnicodeDecompositions[i];
    properties[c] |= kDecomposes;
    decomposition[c] = static_cast<uint16_t>(parts_.size);
    parts_.Append(kUnicodeDecompositions + i + 1);
  }
  for (c = kSyllables; c < kSyllables + kSyllableCount; ++c) properties[c] |= kDecomposes;

  std::vector<int32_t> lower(kCodePoints);
  for (size_t i = 0; i < kUnicodeLowercaseSize; i += 4) {
    const int32_t* const run = kUnicodeLowercase + i;
    for (int32_t upper = run[0]; upper <= run[1]; upper += run[2]) {
      properties[static_cast<size_t>(upper)] |= kHasLower;
      lower[static_cast<size_t>(upper)] = run[3];
    }
  }
  properties_.Pack(properties);
  decomposition_.Pack(decomposition);
  lower_.Pack(lower);

  std::vector<uint16_t> compatibility(kCodePoints);
  const uint32_t no_parts = 0;
  compatible_parts_.Append(&no_parts);
  c = 0;
  for (size_t i = 0; i < kUnicodeCompatibilitySize; i += 2 + kUnicodeCompatibility[i + 1]) {
    c += kUnicodeCompatibility[i];
    compatibility[c] = static_cast<uint16_t>(compatible_parts_.size);
    compatible_parts_.Append(kUnicodeCompatibility + i + 1);
  }
  for (size_t i = 0; i < kUnicodeCompatibilityRunsSize; i += 4) {
    const int32_t* const run = kUnicodeCompatibilityRuns + i;
    for (int32_t from = run[0]; from <= run[1]; from += run[2]) {
      compatibility[static_cast<size_t>(from)] = static_cast<uint16_t>(compatible_parts_.size);
      const uint32_t parts[] = {1, static_cast<uint32_t>(from + run[3])};
      compatible_parts_.Append(parts);
    }
  }
  compatibility_.Pack(compatibility);
  MakeCompositions();
}

// A character composes of the one that its other parts compose to, and its last part. Fewer parts
// come first, so that those are known.
void Unicode::MakeCompositions() {
  for (size_t size = 2; size <= Decomposition().parts.size(); ++size) {
    char32_t c = 0;
    for (size_t i = 0; i < kUnicodeDecompositionsSize; i += 2 + kUnicodeDecompositions[i + 1]) {
      c += kUnicodeDecompositions[i];
      const uint32_t* const parts = kUnicodeDecompositions + i + 2;
      if (kUnicodeDecompositions[i + 1] != size || (PatternProperties(c) & kComposes) == 0)
        continue;
      char32_t first = parts[0];
      for (size_t part = 1; part + 1 < size; ++part) first = Compose(first, parts[part]);
      const uint64_t pair = uint64_t{first} << 32 | parts[size - 1];
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
  const uint32_t* const parts = parts_.values.data() + decomposition_.At(c);
  Decomposition result = {{}, parts[0]};
  std::copy_n(parts + 1, result.size, result.parts.begin());
  return result;
}

}  // namespace encore::internal
