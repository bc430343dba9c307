// SPDX-License-Identifier: Apache-2.0
//
// The normalizers that do one thing to each character.

#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/put_lower.h"
#include "engine/tokenizer/unicode.h"

namespace encore::inline v0_1::internal {
namespace {

// Calls body(c, properties, origin) for each character.
template <typename Body>
void ForEachCharacter(const Unicode& unicode, TextView text, const Body& body) {
  const char* const end = text.data + text.size;
  for (const char* at = text.data; at < end;) {
    const ByteRange origin =
        text.origin == nullptr ? ByteRange() : text.origin[static_cast<size_t>(at - text.data)];
    const char32_t c = NextCodePoint(at);
    body(c, unicode.Properties(c), origin);
  }
}

class Lowercase : public NormalizerStep {
 public:
  void Apply(TextView text, MarkRun*, TextBuffer* out) const override {
    ForEachCharacter(unicode_, text, [&](char32_t c, uint16_t properties, ByteRange origin) {
      PutLower(unicode_, c, properties, origin, out);
    });
  }
  double Growth() const override { return 2; }

 private:
  const Unicode& unicode_ = Unicode::Get();
};

class Nfd : public NormalizerStep {
 public:
  void Apply(TextView text, MarkRun* marks, TextBuffer* out) const override {
    const auto put = [out](char32_t c, ByteRange origin) { out->Put(c, origin); };
    const auto add = [&](char32_t c, bool first, ByteRange origin) {
      const unsigned rank = OrderRank(unicode_.Properties(c));
      if (rank != 0) return marks->Add(c, rank, first, origin);
      marks->Flush(put);
      out->Put(c, origin);
      marks->SetBefore(origin);
    };
    marks->SetBefore({});
    ForEachCharacter(unicode_, text, [&](char32_t c, uint16_t properties, ByteRange origin) {
      if ((properties & kDecomposes) == 0) return add(c, true, origin);
      const Decomposition decomposition = unicode_.Decompose(c);
      for (size_t i = 0; i < decomposition.size; ++i) {
        add(decomposition.parts[i], i == 0, origin);
      }
    });
    marks->Flush(put);
  }
  // U+0390: from two bytes to six.
  double Growth() const override { return 3; }

 private:
  const Unicode& unicode_ = Unicode::Get();
};

class StripAccents : public NormalizerStep {
 public:
  void Apply(TextView text, MarkRun*, TextBuffer* out) const override {
    ForEachCharacter(unicode_, text, [&](char32_t c, uint16_t properties, ByteRange origin) {
      if ((properties & kMark) == 0) out->Put(c, origin);
    });
  }
  double Growth() const override { return 1; }

 private:
  const Unicode& unicode_ = Unicode::Get();
};

}  // namespace

std::unique_ptr<const NormalizerStep> MakeLowercase() { return std::make_unique<Lowercase>(); }
std::unique_ptr<const NormalizerStep> MakeNfd() { return std::make_unique<Nfd>(); }
std::unique_ptr<const NormalizerStep> MakeStripAccents() {
  return std::make_unique<StripAccents>();
}

}  // namespace encore::internal
