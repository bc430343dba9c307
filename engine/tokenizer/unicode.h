// SPDX-License-Identifier: Apache-2.0
//
// What `tokenizers` takes a code point for, and what it turns it into.

#ifndef ENCORE_ENGINE_TOKENIZER_UNICODE_H_
#define ENCORE_ENGINE_TOKENIZER_UNICODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace encore::inline v0_1::internal {

// Properties are bits; those from kOrderShift on are the rank of the canonical combining class
// among the classes in use, 0 for starters.
enum CharProperty : uint16_t {
  kCleaned = 1 << 0,      // removed by BertNormalizer's clean_text
  kWhite = 1 << 1,        // White_Space
  kChinese = 1 << 2,      // gets spaces by BertNormalizer's handle_chinese_chars
  kNonspacing = 1 << 3,   // Mn as of Unicode 8: removed by BertNormalizer's strip_accents
  kMark = 1 << 4,         // M as of Unicode 9: removed by StripAccents
  kPunctuation = 1 << 5,  // stands alone after BertPreTokenizer
  kWordChar = 1 << 6,     // \w of regular expressions
  kDecomposes = 1 << 7,   // has a canonical decomposition
  kHasLower = 1 << 8,     // its lower case is another
  kOrderShift = 10,
};
constexpr unsigned OrderRank(uint16_t properties) { return properties >> kOrderShift; }

// What regular expressions, Digits, NFC and grapheme clusters take a code point for.
enum PatternProperty : uint16_t {
  kLetter = 1 << 0,      // \p{L}
  kNumber = 1 << 1,      // \p{N}
  kSpace = 1 << 2,       // \s
  kAnyMark = 1 << 3,     // \p{M}; in the tables, though no pattern reads it yet
  kNumeric = 1 << 4,     // what Digits splits at
  kExtends = 1 << 5,     // stays with the character before it (Extend, ZWJ, SpacingMark)
  kPrepends = 1 << 6,    // stays with the character behind it
  kControls = 1 << 7,    // nothing stays with it
  kPictograph = 1 << 8,  // Extended_Pictographic
  kComposes = 1 << 9,    // NFC makes it of its canonical decomposition
  kConsonant = 1 << 10,  // of a script whose consonants are joined
  kLinker = 1 << 11,     // joins the consonants at its sides
  kConjoins = 1 << 12,   // may stand beside a linker
};

// A full canonical decomposition.
struct Decomposition {
  std::array<char32_t, 4> parts;
  size_t size;
};

// U+0130 alone has a lower case of two characters, i and this one.
inline constexpr char32_t kCapitalIWithDot = 0x130;
inline constexpr char32_t kDotAbove = 0x307;

// Two-stage tables, unpacked from the generated data once a process, into arrays of the data's
// size: they stay until the library goes. Code points must be below 0x110000.
class Unicode {
 public:
  // Throws std::bad_alloc at its first call if there is no memory to unpack it.
  static const Unicode& Get();

  uint16_t Properties(char32_t c) const { return properties_.At(c); }
  // Of a code point that has kDecomposes.
  Decomposition Decompose(char32_t c) const;
  // The parts of its compatibility decomposition; none where that is the canonical one.
  std::span<const uint32_t> Compatibility(char32_t c) const {
    return parts_.At(compatibility_.At(c));
  }
  // The character that NFC makes of two, or 0.
  char32_t Compose(char32_t first, char32_t second) const;
  uint16_t PatternProperties(char32_t c) const { return patterns_.At(c); }
  // Of a code point that has kHasLower; of U+0130 the first of its two.
  char32_t Lower(char32_t c) const {
    return static_cast<char32_t>(static_cast<int32_t>(c) + lower_.At(c));
  }

 private:
  // What a TwoStage is packed from.
  template <typename T>
  class Draft;

  static constexpr size_t kCodePoints = 0x110000;
  static constexpr unsigned kBlockBits = 7;
  static constexpr size_t kBlockSize = size_t{1} << kBlockBits;
  static constexpr size_t kAllBlocks = kCodePoints / kBlockSize;

  // Values of blocks of 128 code points; equal blocks are stored once, up to kBlocks.
  template <typename T, size_t kBlocks>
  class TwoStage {
   public:
    T At(char32_t c) const { return values_[blocks_[c >> kBlockBits] + (c & (kBlockSize - 1))]; }
    void Pack(const Draft<T>& draft);

   private:
    std::array<uint32_t, kAllBlocks> blocks_ = {};  // where a block's values begin
    std::array<T, kBlocks* kBlockSize> values_ = {};
  };
  // Lists one after another, each behind its size.
  struct PartList {
    std::array<uint32_t, 14742> values = {};
    size_t size = 0;
    uint16_t Append(std::span<const uint32_t> parts);  // the list's place
    std::span<const uint32_t> At(uint16_t place) const {
      return {values.data() + place + 1, values[place]};
    }
  };
  struct Composition {
    uint64_t pair = 0;  // first << 32 | second; 0: none
    char32_t composed = 0;
  };

  Unicode();
  void MakeCompositions(const std::vector<char32_t>& composed);
  // Where in compositions_ the pair is, or should be.
  size_t PlaceOf(uint64_t pair) const {
    size_t place = pair * 0x9E3779B97F4A7C15 >> (64 - kCompositionBits);
    while (compositions_[place].pair != pair && compositions_[place].pair != 0) {
      place = (place + 1) % compositions_.size();
    }
    return place;
  }

  TwoStage<uint16_t, 231> properties_;
  TwoStage<uint16_t, 54> decomposition_;  // index into parts_
  TwoStage<uint16_t, 65> compatibility_;  // the same; an empty list: none
  TwoStage<int32_t, 38> lower_;           // difference
  TwoStage<uint16_t, 256> patterns_;
  PartList parts_;
  static constexpr unsigned kCompositionBits = 11;  // 940 of them
  std::array<Composition, size_t{1} << kCompositionBits> compositions_ = {};
};

inline bool Is(char32_t c, CharProperty property) {
  return (Unicode::Get().Properties(c) & property) != 0;
}

// Valid text without the white space at its start or its end.
std::string_view WithoutWhiteStart(std::string_view text);
std::string_view WithoutWhiteEnd(std::string_view text);

// grapheme.cc: the end of the extended grapheme cluster (Unicode Standard Annex 29) that starts at
// `at`, in valid text that goes on to `end`. Clusters of up to 5 bytes are exact; longer ones may
// be cut where both parts have 6 bytes or one character.
const char* ClusterEnd(const char* at, const char* end);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_UNICODE_H_
