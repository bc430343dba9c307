// SPDX-License-Identifier: Apache-2.0
//
// The normalizers that look at a text, not at each character: Replace, Prepend, Strip.

#include <algorithm>
#include <string>
#include <utility>

#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/unicode.h"

namespace encore::inline v0_1::internal {
namespace {

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
      // All of it comes from where the last character does.
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
