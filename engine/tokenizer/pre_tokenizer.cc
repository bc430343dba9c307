// SPDX-License-Identifier: Apache-2.0
//
// Splits text into words by the kinds of its characters, one table look-up a character, or at the
// matches of a pattern; and reads tokenizer.json's "pre_tokenizer".

#include "engine/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/tokenizer/component_json.h"
#include "engine/tokenizer/unicode.h"

namespace encore::inline v0_1::internal {
namespace {

// What a step does with a character: it goes on the word before it if that is of the same kind,
// except kAlone, which is a word by itself, and kRemoved.
enum class CharKind : uint8_t { kRemoved, kAlone, kFirst, kSecond };

CharKind KindOf(PreTokenizerStep step, char32_t c) {
  if (step == PreTokenizerStep::kDigits || step == PreTokenizerStep::kIndividualDigits) {
    if (!Is(c, kNumeric)) return CharKind::kFirst;
    return step == PreTokenizerStep::kDigits ? CharKind::kSecond : CharKind::kAlone;
  }
  const uint32_t properties = PropertiesOf(c);
  if ((properties & kWhite) != 0) return CharKind::kRemoved;
  switch (step) {
    case PreTokenizerStep::kWhitespaceSplit:
      return CharKind::kFirst;
    case PreTokenizerStep::kBert:
      return (properties & kPunctuation) != 0 ? CharKind::kAlone : CharKind::kFirst;
    case PreTokenizerStep::kWhitespace:
      return (properties & kWordChar) != 0 ? CharKind::kFirst : CharKind::kSecond;
    default:
      break;
  }
  return CharKind::kFirst;
}

class SplitByKind : public WordStep {
 public:
  explicit SplitByKind(PreTokenizerStep step) : step_(step) {
    for (char32_t c = 0; c < ascii_.size(); ++c) ascii_[c] = KindOf(step, c);
  }
  TextView Apply(TextView text, const std::vector<Span>& words, TextBuffer*,
                 std::vector<Span>* finer) const override {
    for (const Span& word : words) SplitWord(text.data, word, finer);
    return text;
  }

 private:
  // Appends the parts of a word.
  void SplitWord(const char* text, Span word, std::vector<Span>* words) const {
    const char* const end = text + word.end;
    const char* at = text + word.begin;
    const auto place = [text](const char* p) { return static_cast<size_t>(p - text); };
    // The kind of the character at `at`, which moves behind it.
    const auto next = [&] {
      if (IsAscii(*at)) return ascii_[static_cast<unsigned char>(*at++)];
      return KindOf(step_, NextCodePoint(at));
    };
    while (at < end) {
      const size_t begin = place(at);
      const CharKind kind = next();
      if (kind == CharKind::kRemoved) continue;
      while (at < end && kind != CharKind::kAlone) {
        const char* const before = at;
        if (next() == kind) continue;
        at = before;
        break;
      }
      words->push_back({begin, place(at)});
    }
  }

  const PreTokenizerStep step_;
  std::array<CharKind, 128> ascii_;
};

// What becomes of matches.
enum class SplitBehavior : uint8_t {
  kRemoved,
  kIsolated,            // each is a word
  kMergedWithPrevious,  // goes to the end of the word before it
  kMergedWithNext,      // goes to the begin of the word behind it
  kContiguous,          // neighbours are one word
};
constexpr std::string_view kBehaviors[] = {"Removed", "Isolated", "MergedWithPrevious",
                                           "MergedWithNext", "Contiguous"};

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

// ---- tokenizer.json: "pre_tokenizer" ----------------------------------------------------------

constexpr std::string_view kKnown =
    "BertPreTokenizer, ByteLevel, Digits, Metaspace, Punctuation, Split, Whitespace, "
    "WhitespaceSplit and a Sequence of these";

// The name of one of them, in the order of SplitBehavior.
SplitBehavior ReadBehavior(JsonMembers* members, std::string_view absent) {
  const std::string name = members->String("behavior", absent);
  const auto* const found = std::find(std::begin(kBehaviors), std::end(kBehaviors), name);
  if (found != std::end(kBehaviors)) return static_cast<SplitBehavior>(found - kBehaviors);
  members->Refuse("behavior",
                  "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  return SplitBehavior::kIsolated;
}

Status ReadSplit(JsonMembers* members, TokenizerParts* parts) {
  const SplitBehavior behavior = ReadBehavior(members, "");
  const bool invert = members->Bool("invert", false);
  ENCORE_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(members));
  parts->pre_tokenizer.Append(std::make_unique<Split>(std::move(pattern), behavior, invert));
  return {};
}

void ReadByteLevel(JsonMembers* members, TokenizerParts* parts) {
  const bool space_before = members->RequiredBool("add_prefix_space");
  const bool use_regex = members->Bool("use_regex", true);
  members->RequiredBool("trim_offsets");  // counts in the post-processor alone
  parts->byte_level = true;
  if (space_before) parts->pre_tokenizer.Append(MakeSpaceBefore());
  if (use_regex) {
    parts->pre_tokenizer.Append(
        std::make_unique<Split>(Pattern::Gpt2(), SplitBehavior::kIsolated, false));
  }
  parts->Note("a space before the text", space_before ? "yes" : "no",
              members->where() + ": add_prefix_space");
}

Status ReadOne(const std::string& type, JsonMembers* members, TokenizerParts* parts) {
  const std::string& where = members->where();
  if (parts->byte_level) {
    return Status(
        ErrorCode::kUnsupported,
        where + ": type is " + Quoted(type) + " behind ByteLevel; encore has that as the last one");
  }
  if (type == "BertPreTokenizer") {
    parts->pre_tokenizer.Append(PreTokenizerStep::kBert);
  } else if (type == "WhitespaceSplit") {
    parts->pre_tokenizer.Append(PreTokenizerStep::kWhitespaceSplit);
  } else if (type == "Whitespace") {
    parts->pre_tokenizer.Append(PreTokenizerStep::kWhitespace);
  } else if (type == "Digits") {
    parts->pre_tokenizer.Append(members->Bool("individual_digits", false)
                                    ? PreTokenizerStep::kIndividualDigits
                                    : PreTokenizerStep::kDigits);
  } else if (type == "Punctuation") {
    parts->pre_tokenizer.Append(
        std::make_unique<Split>(Pattern::Punctuation(), ReadBehavior(members, "Isolated"), false));
  } else if (type == "Split") {
    ENCORE_RETURN_IF_ERROR(ReadSplit(members, parts));
  } else if (type == "ByteLevel") {
    ReadByteLevel(members, parts);
  } else if (type == "Metaspace") {
    ReadMetaspace(members, parts);
  } else {
    return UnknownType(where, type, kKnown);
  }
  parts->Note("pre-tokenizer", type, where);
  return {};
}

}  // namespace

void PreTokenizer::Append(PreTokenizerStep step) {
  steps_.push_back(std::make_unique<SplitByKind>(step));
}

PreTokenizer::Words PreTokenizer::Split(TextView text, Scratch* scratch) const {
  std::vector<Span>* words = &scratch->words[0];
  words->clear();
  if (text.size != 0) words->push_back({0, text.size});
  for (size_t i = 0; i < steps_.size(); ++i) {
    std::vector<Span>* const finer = &scratch->words[(i + 1) % 2];
    finer->clear();
    // The buffer that the text is not in.
    TextBuffer* const changed = &scratch->buffers[text.data == scratch->buffers[0].view().data];
    changed->Clear(text.origin != nullptr);
    text = steps_[i]->Apply(text, *words, changed, finer);
    words = finer;
  }
  return {text, *words};
}

double PreTokenizer::Growth() const {
  double growth = 1;
  for (const auto& step : steps_) growth *= step->Growth();
  return growth;
}

Status ReadPreTokenizer(const JsonValue& json, const std::string& file, TokenizerParts* parts) {
  const std::string where = file + ": pre_tokenizer";
  if (json.is_null()) {
    parts->Note("pre-tokenizer", "none: a text is one word", where);
    return {};
  }
  return ReadComponent(json, where, "pretokenizers",
                       [parts](const std::string& type, JsonMembers* members) {
                         return ReadOne(type, members, parts);
                       });
}

}  // namespace encore::internal
