// SPDX-License-Identifier: Apache-2.0
//
// Pre-tokenizers that change the text: Metaspace, and ByteLevel's space in front of words.

#include <algorithm>

#include "engine/tokenizer/component_json.h"

namespace encore::inline v0_1::internal {
namespace {

std::string_view Of(TextView text, Span word) {
  return text.text().substr(word.begin, word.end - word.begin);
}

// A prefix of a word has the offsets of its first character.
void PutBefore(TextView text, Span word, std::string_view what, TextBuffer* out) {
  out->PutBytes(what, text.Origin({word.begin, word.begin + 1}));
}

enum class PrependScheme : uint8_t { kNever, kFirst, kAlways };
struct MetaspaceSettings {
  std::string replacement;  // one character
  PrependScheme prepend_scheme = PrependScheme::kAlways;
  bool split = true;
};

// Spaces become the replacement. It is also put in front of words that do not start with it: all,
// or with kFirst those that the original text starts with.
class Metaspace : public WordStep {
 public:
  explicit Metaspace(const MetaspaceSettings& settings) : settings_(settings) {}

  TextView Apply(TextView text, const std::vector<Span>& words, TextBuffer* changed,
                 std::vector<Span>* finer) const override {
    const std::string_view mark = settings_.replacement;
    for (const Span& word : words) {
      size_t begin = changed->size();
      // Words go from mark to mark.
      const auto end_word = [&] {
        if (!settings_.split || begin == changed->size()) return;
        finer->push_back({begin, changed->size()});
        begin = changed->size();
      };
      // The next space, and the next mark that is in the text already: each is looked for again
      // only once it is passed, so that every byte is read once for either.
      size_t space = Find(" ", text, word.begin, word.end);
      size_t marked = FindMark(text, word.begin, word.end);
      if (space != word.begin && !Of(text, word).starts_with(mark) && Prepends(text, word)) {
        PutBefore(text, word, mark, changed);
      }
      for (size_t at = word.begin; at < word.end;) {
        if (at == space) {
          end_word();
          changed->PutBytes(mark, text.Origin({at, at + 1}));
          ++at;
          space = Find(" ", text, at, word.end);
        } else if (at == marked) {
          end_word();
          changed->PutPart(text.Part({at, at + mark.size()}));
          at += mark.size();
          marked = FindMark(text, at, word.end);
        } else {
          const size_t end = std::min(space, marked);
          changed->PutPart(text.Part({at, end}));
          at = end;
        }
      }
      finer->push_back({begin, changed->size()});
    }
    return changed->view();
  }
  // A word of one byte becomes a mark and that byte.
  double Growth() const override { return 1 + static_cast<double>(settings_.replacement.size()); }

 private:
  bool Prepends(TextView text, Span word) const {
    if (settings_.prepend_scheme != PrependScheme::kFirst) {
      return settings_.prepend_scheme == PrependScheme::kAlways;
    }
    return text.origin == nullptr ? word.begin == 0 : text.Origin(word).begin == 0;
  }
  // The first place from `at` on of what is looked for, or `end`.
  static size_t Find(std::string_view what, TextView text, size_t at, size_t end) {
    const size_t found = Of(text, {at, end}).find(what);
    return found == std::string_view::npos ? end : at + found;
  }
  // Marks matter where words end at them; those that are spaces are found as such.
  size_t FindMark(TextView text, size_t at, size_t end) const {
    const bool matters = settings_.split && settings_.replacement != " ";
    return matters ? Find(settings_.replacement, text, at, end) : end;
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
  double Growth() const override { return 2; }
};

}  // namespace

std::unique_ptr<const WordStep> MakeSpaceBefore() { return std::make_unique<SpaceBefore>(); }

void ReadMetaspace(JsonMembers* members, TokenizerParts* parts) {
  MetaspaceSettings settings = {.replacement = members->RequiredString("replacement")};
  if (settings.replacement.empty() ||
      settings.replacement.size() != Utf8Length(settings.replacement[0])) {
    members->Refuse("replacement", "one character");
  }
  settings.split = members->Bool("split", true);
  const std::optional<bool> space_before = members->OptionalBool("add_prefix_space");
  std::string scheme =
      members->String("prepend_scheme", space_before == false ? "never" : "always");
  members->Ignore("str_rep");  // the replacement once more, in files of old
  if (scheme == "first") {
    settings.prepend_scheme = PrependScheme::kFirst;
    parts->needs_origins = true;
  } else if (scheme == "never") {
    settings.prepend_scheme = PrependScheme::kNever;
  } else if (scheme != "always") {
    members->Refuse("prepend_scheme", "always, first or never");
  }
  if (space_before == false && scheme != "never") {
    members->Refuse("prepend_scheme", "never, as add_prefix_space is false");
  }
  parts->pre_tokenizer.Append(std::make_unique<Metaspace>(settings));
  parts->Note("a space before the text", scheme, members->where() + ": prepend_scheme");
}

}  // namespace encore::internal
