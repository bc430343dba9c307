// SPDX-License-Identifier: Apache-2.0
//
// Words and entities from the scores of tokens.

#include "engine/text/token_labels.h"

#include <algorithm>
#include <utility>

#include "engine/base/activations.h"
#include "engine/base/status_macros.h"
#include "engine/io/json_members.h"
#include "engine/text/model2vec.h"

namespace encore::inline v0_1 {

std::string_view AggregationName(Aggregation aggregation) {
  constexpr std::string_view kNames[] = {"none", "simple", "first", "average", "max"};
  const auto i = static_cast<size_t>(aggregation);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

namespace internal {
namespace {

// A token, or a word of some.
struct Scored {
  std::vector<float> scores;  // [labels], by softmax
  size_t best = 0;            // the first label of the highest score
  ByteRange place;
  bool goes_on = false;  // a word that the token before it began
};

size_t BestOf(const std::vector<float>& scores) {
  return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

// Softmax in f32.
std::vector<float> Probabilities(const float* logits, size_t labels) {
  const ActivationRow* const softmax = FindTorchActivation("torch.nn.Softmax");
  std::vector<float> scores(logits, logits + labels);
  softmax->apply(scores.data(), labels);
  return scores;
}

bool GoesOn(std::string_view text, int32_t id, const ByteRange& place, const Tokenizer& tokenizer,
            const WordRules& rules) {
  if (rules.unknown == id) return false;
  if (rules.marks_words) {
    return CharactersOf(tokenizer.IdToToken(id)) !=
           CharactersOf(text.substr(place.begin, place.end - place.begin));
  }
  const bool space_before = place.begin > 0 && text[place.begin - 1] == ' ';
  const bool begins_with_space = place.begin < text.size() && text[place.begin] == ' ';
  return place.begin > 0 && !space_before && !begins_with_space;
}

// The scores of a word's tokens as one.
Scored WordOf(std::span<const Scored> tokens, Aggregation aggregation) {
  Scored word = tokens.front();
  if (aggregation == Aggregation::kMax) {
    word = *std::max_element(tokens.begin(), tokens.end(), [](const Scored& a, const Scored& b) {
      return a.scores[a.best] < b.scores[b.best];
    });
  } else if (aggregation == Aggregation::kAverage) {
    for (const Scored& token : tokens.subspan(1)) {
      for (size_t i = 0; i < word.scores.size(); ++i) word.scores[i] += token.scores[i];
    }
    for (float& score : word.scores) score /= static_cast<float>(tokens.size());
    word.best = BestOf(word.scores);
  }
  word.place = {tokens.front().place.begin, tokens.back().place.end};
  return word;
}

std::vector<Scored> WordsOf(std::span<const Scored> tokens, Aggregation aggregation) {
  std::vector<Scored> words;
  for (size_t begin = 0; begin < tokens.size();) {
    size_t end = begin + 1;
    while (end < tokens.size() && tokens[end].goes_on) ++end;
    words.push_back(WordOf(tokens.subspan(begin, end - begin), aggregation));
    begin = end;
  }
  return words;
}

// "B-PER" begins an entity of the tag "PER", "I-PER" and "PER" go on.
std::string_view TagOf(std::string_view label) {
  return label.starts_with("B-") || label.starts_with("I-") ? label.substr(2) : label;
}

Entity EntityOf(std::span<const Scored> pieces, const std::vector<std::string>& labels) {
  const std::string& label = labels[pieces.front().best];
  const size_t dash = label.find('-');
  double sum = 0;
  for (const Scored& piece : pieces) sum += piece.scores[piece.best];
  return {.label = dash == std::string::npos ? label : label.substr(dash + 1),
          .score = static_cast<float>(sum / static_cast<double>(pieces.size())),
          .place = {pieces.front().place.begin, pieces.back().place.end}};
}

}  // namespace

std::vector<Entity> EntitiesOf(std::string_view text, const Tokens& tokens, const float* logits,
                               const std::vector<std::string>& labels, const Tokenizer& tokenizer,
                               const WordRules& rules, const LabelOptions& options) {
  std::vector<Scored> pieces;
  for (size_t t = rules.before; t + rules.behind < tokens.ids.size(); ++t) {
    Scored piece{.scores = Probabilities(logits + t * labels.size(), labels.size()),
                 .place = tokens.offsets[t]};
    piece.best = BestOf(piece.scores);
    piece.goes_on = GoesOn(text, tokens.ids[t], piece.place, tokenizer, rules);
    pieces.push_back(std::move(piece));
  }
  std::vector<Entity> entities;
  const auto add = [&](Entity entity) {
    const auto& ignored = options.ignore_labels;
    if (std::find(ignored.begin(), ignored.end(), entity.label) != ignored.end()) return;
    entities.push_back(std::move(entity));
  };
  if (options.aggregation == Aggregation::kNone) {
    for (const Scored& piece : pieces) {
      add({labels[piece.best], piece.scores[piece.best], piece.place});
    }
    return entities;
  }
  if (options.aggregation != Aggregation::kSimple) pieces = WordsOf(pieces, options.aggregation);
  const std::span<const Scored> all(pieces);
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin + 1;
    const std::string_view tag = TagOf(labels[all[begin].best]);
    while (end < all.size() && TagOf(labels[all[end].best]) == tag &&
           !labels[all[end].best].starts_with("B-")) {
      ++end;
    }
    add(EntityOf(all.subspan(begin, end - begin), labels));
    begin = end;
  }
  return entities;
}

Result<WordRules> ReadWordRules(const Folder& folder, const Tokenizer& tokenizer) {
  WordRules rules;
  // A string, or an object whose content is one.
  const auto text_of = [](const JsonValue* value) -> std::string {
    if (value != nullptr && value->is_object()) value = value->Find("content");
    return value != nullptr && value->is_string() ? value->text() : std::string();
  };
  std::string unknown;
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> config,
                          folder.ReadJson("tokenizer_config.json"));
  if (config.has_value()) unknown = text_of(config->Find("unk_token"));
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> json, folder.ReadJson("tokenizer.json"));
  if (json.has_value()) {
    const JsonValue* model = json->Find("model");
    rules.marks_words =
        model != nullptr && !text_of(model->Find("continuing_subword_prefix")).empty();
    if (unknown.empty() && model != nullptr) unknown = text_of(model->Find("unk_token"));
  } else {
    ENCORE_ASSIGN_OR_RETURN(rules.marks_words, folder.Has("vocab.txt"));
  }
  for (const char* const usual : {"[UNK]", "<unk>"}) {
    if (unknown.empty() && tokenizer.TokenToId(usual)) unknown = usual;
  }
  if (!unknown.empty()) rules.unknown = tokenizer.TokenToId(unknown);
  // The template's tokens before and behind a text's own.
  const size_t special = tokenizer.special_tokens_of_text();
  Tokens bare;
  Tokens whole;
  ENCORE_RETURN_IF_ERROR(tokenizer.Encode("a", &bare, {.add_special_tokens = false}));
  ENCORE_RETURN_IF_ERROR(tokenizer.Encode("a", &whole));
  const auto at = std::search(whole.ids.begin(), whole.ids.end(), bare.ids.begin(), bare.ids.end());
  rules.before = std::min(static_cast<size_t>(at - whole.ids.begin()), special);
  rules.behind = special - rules.before;
  return rules;
}

}  // namespace internal
}  // namespace encore
