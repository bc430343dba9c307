// SPDX-License-Identifier: Apache-2.0
//
// Pre-tokenizers that change the text: Metaspace, and ByteLevel's space in front of words.

#include <algorithm>
#include <cstring>

#include "engine/tokenizer/pre_tokenizer.h"

namespace encore::inline v0_1::internal {
namespace {

std::string_view Of(TextView text, Span word) {
  return text.text().substr(word.begin, word.end - word.begin);
}

// What stands in front of a word comes from where its first character does.
void PutBefore(TextView text, Span word, std::string_view what, TextBuffer* out) {
  out->PutBytes(what, text.Origin({word.begin, word.begin + 1}));
}

class Metaspace : public WordStep {
 public:
  explicit Metaspace(const MetaspaceSettings& settings) : settings_(settings) {}

  TextView Apply(TextView text, const std::vector<Span>& words, TextBuffer* changed,
                 std::vector<Span>* finer) const override {
    const std::string_view mark = settings_.replacement;
    for (const Span& word : words) {
      size_t begin = changed->size();
      const char first = text.data[word.begin];
      if (first != ' ' && !Of(text, word).starts_with(mark) && Prepends(text, word)) {
        PutBefore(text, word, mark, changed);
      }
      for (size_t at = word.begin; at < word.end;) {
        if (text.data[at] == ' ') {
          // Words go from mark to mark.
          if (settings_.split && begin < changed->size()) {
            finer->push_back({begin, changed->size()});
            begin = changed->size();
          }
          changed->PutBytes(mark, text.Origin({at, at + 1}));
          ++at;
          continue;
        }
        size_t end = NextSpace(text, at + 1, word.end);
        if (settings_.split) end = NextMark(text, at, end);
        if (end == at) {  // a mark that is in the text already
          if (begin < changed->size()) {
            finer->push_back({begin, changed->size()});
            begin = changed->size();
          }
          CopyBytes(text, {at, at + mark.size()}, changed);
          at += mark.size();
          continue;
        }
        CopyBytes(text, {at, end}, changed);
        at = end;
      }
      finer->push_back({begin, changed->size()});
    }
    return changed->view();
  }

 private:
  bool Prepends(TextView text, Span word) const {
    if (settings_.prepend_scheme != PrependScheme::kFirst) {
      return settings_.prepend_scheme == PrependScheme::kAlways;
    }
    return text.origin == nullptr ? word.begin == 0 : text.Origin(word).begin == 0;
  }
  static size_t NextSpace(TextView text, size_t at, size_t end) {
    const void* const found = at >= end ? nullptr : std::memchr(text.data + at, ' ', end - at);
    return found == nullptr ? end
                            : static_cast<size_t>(static_cast<const char*>(found) - text.data);
  }
  size_t NextMark(TextView text, size_t at, size_t end) const {
    const size_t found = Of(text, {at, end}).find(settings_.replacement);
    return found == std::string_view::npos ? end : at + found;
  }
  static void CopyBytes(TextView text, Span part, TextBuffer* out) {
    out->PutPart(text.Part(part));
  }

  const MetaspaceSettings settings_;
};

class SpaceBefore : public WordStep {
 public:
  TextView Apply(TextView text, const std::vector<Span>& words, TextBuffer* changed,
                 std::vector<Span>* finer) const override {
    const bool all_have = std::all_of(
        words.begin(), words.end(), [&](const Span& word) { return text.data[word.begin] == ' '; });
    if (all_have) {
      finer->assign(words.begin(), words.end());
      return text;
    }
    for (const Span& word : words) {
      const size_t begin = changed->size();
      if (text.data[word.begin] != ' ') PutBefore(text, word, " ", changed);
      changed->PutPart(text.Part(word));
      finer->push_back({begin, changed->size()});
    }
    return changed->view();
  }
};

}  // namespace

std::unique_ptr<const WordStep> MakeMetaspace(const MetaspaceSettings& settings) {
  return std::make_unique<Metaspace>(settings);
}
std::unique_ptr<const WordStep> MakeSpaceBefore() { return std::make_unique<SpaceBefore>(); }

}  // namespace encore::internal
