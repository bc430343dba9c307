// SPDX-License-Identifier: Apache-2.0
//
// Steps one after another, between two buffers; the steps that go by the properties of each
// character, of which BertNormalizer does several things in one pass; and those that look at a
// text.

#include "engine/tokenizer/normalizer.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "engine/tokenizer/unicode.h"

namespace encore::inline v0_1::internal {
namespace {

// Puts the lower case of a character with these properties.
void PutLower(char32_t c, uint32_t properties, ByteRange origin, TextBuffer* out) {
  out->Put((properties & kHasLower) != 0 ? LowerOf(c) : c, origin);
  if (c == kCapitalIWithDot) out->Put(kDotAbove, origin);
}

// Calls body(c, properties, origin) for each character.
template <typename Body>
void ForEachCharacter(TextView text, const Body& body) {
  const char* const end = text.data + text.size;
  for (const char* at = text.data; at < end;) {
    const ByteRange origin =
        text.origin == nullptr ? ByteRange() : text.origin[static_cast<size_t>(at - text.data)];
    const char32_t c = NextCodePoint(at);
    body(c, PropertiesOf(c), origin);
  }
}

class Lowercase : public NormalizerStep {
 public:
  void Apply(TextView text, MarkRun*, TextBuffer* out) const override {
    ForEachCharacter(text, [&](char32_t c, uint32_t properties, ByteRange origin) {
      PutLower(c, properties, origin, out);
    });
  }
  double Growth() const override { return 2; }
};

class StripAccents : public NormalizerStep {
 public:
  void Apply(TextView text, MarkRun*, TextBuffer* out) const override {
    ForEachCharacter(text, [&](char32_t c, uint32_t properties, ByteRange origin) {
      if ((properties & kMark) == 0) out->Put(c, origin);
    });
  }
  double Growth() const override { return 1; }
};

// Cleaning, spaces around Chinese characters, removal of accents and lower case in one pass.
class BertNormalizer : public NormalizerStep {
 public:
  explicit BertNormalizer(const BertNormalizerSettings& settings) : settings_(settings) {
    for (char32_t c = 0; c < ascii_.size(); ++c) {
      const uint32_t properties = PropertiesOf(c);
      char32_t result = c;
      if (settings.clean_text) {
        if ((properties & kCleaned) != 0) result = kNothing;
        if (result == c && (properties & kWhite) != 0) result = ' ';
      }
      if (settings.lowercase && (properties & kHasLower) != 0) result = LowerOf(c);
      ascii_[c] = static_cast<unsigned char>(result);
    }
  }

  void Apply(TextView text, MarkRun* marks, TextBuffer* out) const override {
    Pass pass = {settings_, marks, out};
    marks->SetBefore({});
    const char* const end = text.data + text.size;
    for (const char* at = text.data; at < end;) {
      if (IsAscii(*at) && !out->with_origins()) {
        pass.FlushMarks();
        at = PutAsciiRun(at, end, out);
        continue;
      }
      const ByteRange origin =
          out->with_origins() ? text.origin[static_cast<size_t>(at - text.data)] : ByteRange();
      pass.Character(NextCodePoint(at), origin);
    }
    pass.FlushMarks();
  }
  // As decomposition has it; spaces around a Chinese character are less.
  double Growth() const override { return 3; }

 private:
  static constexpr unsigned char kNothing = 0xFF;

  // The state of a call.
  struct Pass {
    const BertNormalizerSettings& settings;
    MarkRun* marks;
    TextBuffer* out;

    void Character(char32_t c, ByteRange origin) {
      uint32_t properties = PropertiesOf(c);
      if (settings.clean_text) {
        if ((properties & kCleaned) != 0) return;
        if ((properties & kWhite) != 0) return Starter(' ', origin);
      }
      const bool spaced = settings.handle_chinese_chars && (properties & kChinese) != 0;
      if (spaced) Starter(' ', origin);
      if (!settings.strip_accents) {
        Put(c, properties, origin);
      } else if ((properties & kDecomposes) == 0) {
        Part(c, properties, true, origin);
      } else {
        const Decomposition decomposition = Decompose(c);
        for (size_t i = 0; i < decomposition.size; ++i) {
          const char32_t part = decomposition.parts[i];
          Part(part, PropertiesOf(part), i == 0, origin);
        }
      }
      if (spaced) Starter(' ', origin);
    }

    // What stays of decomposed text: marks that are not nonspacing (to Unicode 8), in canonical
    // order. A nonspacing starter goes, but only after it has ended the run of marks before it.
    void Part(char32_t c, uint32_t properties, bool first, ByteRange origin) {
      const unsigned rank = OrderRank(properties);
      const bool stays = (properties & kNonspacing) == 0;
      if (rank == 0) {
        FlushMarks();
        if (stays) Put(c, properties, origin);
        marks->SetBefore(origin);
      } else if (stays || out->with_origins()) {
        marks->Add(c, rank, first, origin);
      }
    }

    void Starter(char32_t c, ByteRange origin) {
      FlushMarks();
      out->Put(c, origin);
      marks->SetBefore(origin);
    }

    void FlushMarks() {
      marks->Flush([this](char32_t c, ByteRange origin) {
        const uint32_t properties = PropertiesOf(c);
        if ((properties & kNonspacing) == 0) Put(c, properties, origin);
      });
    }

    void Put(char32_t c, uint32_t properties, ByteRange origin) {
      if (settings.lowercase) return PutLower(c, properties, origin, out);
      out->Put(c, origin);
    }
  };

  // Without origins: everything up to the first byte that is not ASCII. Returns its place.
  const char* PutAsciiRun(const char* at, const char* end, TextBuffer* out) const {
    char* to = out->Room(static_cast<size_t>(end - at));
    for (; at < end && IsAscii(*at); ++at) {
      const unsigned char result = ascii_[static_cast<unsigned char>(*at)];
      *to = static_cast<char>(result);
      to += result != kNothing;
    }
    out->ExtendTo(to);
    return at;
  }

  const BertNormalizerSettings settings_;
  std::array<unsigned char, 128> ascii_;  // what becomes of each
};

class Replace : public NormalizerStep {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void Apply(TextView text, MarkRun*, TextBuffer* out) const override {
    size_t done = 0;
    std::string_view match;
    while (pattern_.Next(text.data + done, text.data + text.size, &match)) {
      const size_t begin = static_cast<size_t>(match.data() - text.data);
      out->PutPart(text.Part({done, begin}));
      done = begin + match.size();
      // All of it has the offsets of the last character.
      out->PutBytes(content_, text.Origin({done - 1, done}));
    }
    out->PutPart(text.Part({done, text.size}));
  }
  double Growth() const override {
    return std::max(1.0, static_cast<double>(content_.size()) /
                             static_cast<double>(pattern_.min_match_bytes()));
  }

 private:
  const Pattern pattern_;
  const std::string content_;
};

class Prepend : public NormalizerStep {
 public:
  explicit Prepend(std::string content) : content_(std::move(content)) {}
  void Apply(TextView text, MarkRun*, TextBuffer* out) const override {
    if (text.size == 0) return;
    out->PutBytes(content_, text.Origin({0, 1}));
    out->PutPart(text);
  }
  double Growth() const override { return 1 + static_cast<double>(content_.size()); }

 private:
  const std::string content_;
};

class Strip : public NormalizerStep {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void Apply(TextView text, MarkRun*, TextBuffer* out) const override {
    std::string_view kept = text.text();
    if (left_) kept = WithoutWhiteStart(kept);
    const size_t begin = text.size - kept.size();
    if (right_) kept = WithoutWhiteEnd(kept);
    out->PutPart(text.Part({begin, begin + kept.size()}));
  }
  double Growth() const override { return 1; }

 private:
  const bool left_;
  const bool right_;
};

}  // namespace

TextView Normalizer::Apply(TextView text, Scratch* scratch) const {
  for (size_t i = 0; i < steps_.size(); ++i) {
    TextBuffer& out = scratch->buffers[i % 2];
    out.Clear(text.origin != nullptr);
    steps_[i]->Apply(text, &scratch->marks, &out);
    text = out.view();
  }
  return text;
}

double Normalizer::Growth() const {
  double growth = 1;
  for (const auto& step : steps_) growth *= step->Growth();
  return growth;
}

std::unique_ptr<const NormalizerStep> MakeLowercase() { return std::make_unique<Lowercase>(); }
std::unique_ptr<const NormalizerStep> MakeStripAccents() {
  return std::make_unique<StripAccents>();
}
std::unique_ptr<const NormalizerStep> MakeBertNormalizer(const BertNormalizerSettings& settings) {
  return std::make_unique<BertNormalizer>(settings);
}

std::unique_ptr<const NormalizerStep> MakeReplace(Pattern pattern, std::string content) {
  return std::make_unique<Replace>(std::move(pattern), std::move(content));
}
std::unique_ptr<const NormalizerStep> MakePrepend(std::string content) {
  return std::make_unique<Prepend>(std::move(content));
}
std::unique_ptr<const NormalizerStep> MakeStrip(bool left, bool right) {
  return std::make_unique<Strip>(left, right);
}

}  // namespace encore::internal
