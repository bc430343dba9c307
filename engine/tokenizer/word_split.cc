// SPDX-License-Identifier: Apache-2.0
//
// Splits words at the matches of a pattern, or at punctuation.

#include <utility>

#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/unicode.h"

namespace encore::inline v0_1::internal {
namespace {

// The parts of one word, from left to right.
class Parts {
 public:
  Parts(SplitBehavior behavior, std::vector<Span>* words) : behavior_(behavior), words_(words) {}

  void Add(Span part, bool is_match) {
    if (part.begin == part.end) return;
    switch (behavior_) {
      case SplitBehavior::kIsolated:
        words_->push_back(part);
        return;
      case SplitBehavior::kRemoved:
        if (!is_match) words_->push_back(part);
        return;
      case SplitBehavior::kContiguous:
        Append(part, any_ && is_match == last_is_match_);
        break;
      case SplitBehavior::kMergedWithPrevious:
        Append(part, any_ && is_match && !last_is_match_);
        break;
      case SplitBehavior::kMergedWithNext:
        // Of matches in a row the last one alone goes with what follows.
        Append(part, any_ && !is_match && last_is_match_);
        break;
    }
    any_ = true;
    last_is_match_ = is_match;
  }

 private:
  void Append(Span part, bool to_last) {
    if (to_last) {
      words_->back().end = part.end;
    } else {
      words_->push_back(part);
    }
  }

  const SplitBehavior behavior_;
  std::vector<Span>* const words_;
  bool any_ = false;
  bool last_is_match_ = false;
};

class Split : public WordStep {
 public:
  Split(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  TextView Apply(TextView text, const std::vector<Span>& words, TextBuffer*,
                 std::vector<Span>* finer) const override {
    for (const Span& word : words) {
      Parts parts(behavior_, finer);
      size_t done = word.begin;
      std::string_view match;
      while (pattern_.Next(text.data + done, text.data + word.end, &match)) {
        const size_t begin = static_cast<size_t>(match.data() - text.data);
        parts.Add({done, begin}, invert_);
        done = begin + match.size();
        parts.Add({begin, done}, !invert_);
      }
      parts.Add({done, word.end}, invert_);
    }
    return text;
  }

 private:
  const Pattern pattern_;
  const SplitBehavior behavior_;
  const bool invert_;
};

class Punctuation : public WordStep {
 public:
  explicit Punctuation(SplitBehavior behavior) : behavior_(behavior) {}

  TextView Apply(TextView text, const std::vector<Span>& words, TextBuffer*,
                 std::vector<Span>* finer) const override {
    for (const Span& word : words) {
      Parts parts(behavior_, finer);
      size_t done = word.begin;
      for (size_t begin = word.begin; begin < word.end;) {
        const char* at = text.data + begin;
        const bool is_match = (Unicode::Get().Properties(NextCodePoint(at)) & kPunctuation) != 0;
        const size_t end = static_cast<size_t>(at - text.data);
        if (is_match) {
          parts.Add({done, begin}, false);
          parts.Add({begin, end}, true);
          done = end;
        }
        begin = end;
      }
      parts.Add({done, word.end}, false);
    }
    return text;
  }

 private:
  const SplitBehavior behavior_;
};

}  // namespace

std::unique_ptr<const WordStep> MakeSplit(Pattern pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<Split>(std::move(pattern), behavior, invert);
}
std::unique_ptr<const WordStep> MakePunctuation(SplitBehavior behavior) {
  return std::make_unique<Punctuation>(behavior);
}

}  // namespace encore::internal
