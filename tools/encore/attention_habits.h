// SPDX-License-Identifier: Apache-2.0
//
// What a model's attention weights say in a few numbers: which kinds of tokens the words look at,
// in each layer and head, and the strongest links. Not here: the weights (model_attention.h), the
// wording (model_attention_report.h).

#ifndef ENCORE_TOOLS_ENCORE_ATTENTION_HABITS_H_
#define ENCORE_TOOLS_ENCORE_ATTENTION_HABITS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "tools/encore/model_attention.h"

namespace encore::tool {

// Everything that a word (a token that is not special) can look at, each token being of one kind:
// every special token of the template by its name, then "itself", "previous" and "next" (words
// only), "same word" elsewhere, "other text" (of a pair), "other words". Kinds that no word of this
// text has are left out.
struct AttentionHabits {
  std::vector<std::string> kinds;
  // [layer][kind]: the share of the words' attention, mean over words and heads; sums to 1.
  std::vector<std::vector<double>> layers;
  // [layer][head][kind]: the mean over those words that have a token of that kind.
  std::vector<std::vector<std::vector<double>>> heads;
  // [layer][head]: the largest weight that a word gives to one of the other words (in a pair: of
  // the other text), mean over words. Large where a head picks out words.
  std::vector<std::vector<double>> focus;
};

// A text without words has no kinds.
AttentionHabits FindHabits(const ModelAttention& attention);

struct HeadPlace {
  size_t layer = 0;
  size_t head = 0;
  double share = 0;
};

// Heads by their share of one kind, the largest first; at most `most`, all of `least` or more.
std::vector<HeadPlace> HeadsWithHabit(const AttentionHabits& habits, size_t kind, double least,
                                      size_t most);

// The head that tells most about the text, by its focus; the first one where there are no words.
HeadPlace MostTellingHead(const AttentionHabits& habits);

struct Link {
  size_t from = 0;
  size_t to = 0;
  double weight = 0;
};

// The strongest weights [T, T] between two different words.
std::vector<Link> StrongestLinks(const ModelAttention& attention, ConstView weights, size_t most);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_ATTENTION_HABITS_H_
