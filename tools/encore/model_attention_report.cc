// SPDX-License-Identifier: Apache-2.0
//
// Wording and layout of what `encore attend --model` shows.

#include "tools/encore/attend_report.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using Json = nlohmann::ordered_json;

// A head has a habit from this share of the words' attention on.
constexpr double kHabit = 0.5;
constexpr size_t kHeadsShown = 4;
constexpr size_t kLinksShown = 4;

std::string LayerAndHead(size_t layer, size_t head) {
  return "layer " + std::to_string(layer + 1) + " head " + std::to_string(head + 1);
}

void PrintShares(std::ostream& out, const AttentionHabits& habits) {
  out << "\nWhat the words look at, in percent (mean over words and heads)\n  layer";
  for (const std::string& kind : habits.kinds) {
    out << "  " << PadLeft(kind, std::max<size_t>(DisplayWidth(kind), 5));
  }
  out << "\n";
  for (size_t layer = 0; layer < habits.layers.size(); ++layer) {
    out << "  " << PadLeft(std::to_string(layer + 1), 5);
    for (size_t k = 0; k < habits.kinds.size(); ++k) {
      out << "  "
          << PadLeft(Number(100 * habits.layers[layer][k], 0),
                     std::max<size_t>(DisplayWidth(habits.kinds[k]), 5));
    }
    out << "\n";
  }
}

// "cat -> sat 0.31, mat -> the 0.25".
std::string Links(const std::vector<std::string>& labels, const std::vector<Link>& links) {
  std::string text;
  for (const Link& link : links) {
    text += (text.empty() ? "" : ", ") + labels[link.from] + " -> " + labels[link.to] + " " +
            Number(link.weight, 2);
  }
  return text.empty() ? "there are no two words" : text;
}

void PrintLinks(std::ostream& out, const ModelAttention& attention) {
  out << "\nThe strongest links between words (mean over heads)\n";
  const std::vector<std::string> labels = attention.Labels();
  for (size_t layer = 0; layer < attention.layers(); ++layer) {
    const Tensor mean = MeanOfHeads(attention.layer(layer));
    out << "  layer " << PadRight(std::to_string(layer + 1), 3)
        << Links(labels, StrongestLinks(attention, mean.View<float>(), kLinksShown)) << "\n";
  }
}

void PrintHabits(std::ostream& out, const AttentionHabits& habits) {
  out << "\nHeads with a habit (their words look at this with " << Number(100 * kHabit, 0)
      << " % or more)\n";
  const size_t widest = WidestOf(habits.kinds);
  for (size_t k = 0; k < habits.kinds.size(); ++k) {
    const std::vector<HeadPlace> heads =
        HeadsWithHabit(habits, k, kHabit, habits.heads.size() * habits.heads[0].size());
    out << "  " << PadRight(habits.kinds[k], widest) << "  ";
    for (size_t i = 0; i < std::min(heads.size(), kHeadsShown); ++i) {
      out << (i > 0 ? ", " : "") << LayerAndHead(heads[i].layer, heads[i].head) << " "
          << Number(100 * heads[i].share, 0) << " %";
    }
    if (heads.empty()) out << "none";
    if (heads.size() > kHeadsShown) out << ", and " << heads.size() - kHeadsShown << " more";
    out << "\n";
  }
}

// Each head of a layer with what its words look at most.
void PrintHeadsOf(std::ostream& out, const ModelAttention& attention, const AttentionHabits& habits,
                  size_t layer) {
  const std::vector<std::string> labels = attention.Labels();
  out << "\nIts heads: what their words look at most, and the strongest link between words\n";
  for (size_t head = 0; head < attention.heads; ++head) {
    const std::vector<double>& shares = habits.heads[layer][head];
    const size_t most =
        static_cast<size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
    out << "  head " << PadRight(std::to_string(head + 1), 3) << PadRight(habits.kinds[most], 12)
        << PadLeft(Number(100 * shares[most], 0), 3) << " %   "
        << Links(labels, StrongestLinks(attention, attention.layer(layer)[head], 1)) << "\n";
  }
}

void PrintMap(std::ostream& out, const ModelAttention& attention, ConstView weights,
              const MatrixStyle& style) {
  const std::vector<std::string> labels = attention.Labels();
  PrintHeatMap(out, labels, labels, weights, style);
  out << "\nWho attends most to whom\n";
  PrintWhoAttendsMost(out, labels, labels, weights, style);
}

}  // namespace

void PrintModelAttention(std::ostream& out, const ModelAttention& attention,
                         const AttentionHabits& habits, const AttentionChoice& choice,
                         const MatrixStyle& style) {
  out << "Attention in " << attention.model << ": \"" << attention.text << "\"\n("
      << Counted(attention.size(), "token") << ", " << Counted(attention.layers(), "layer")
      << " of " << Counted(attention.heads, "head") << ", in " << PrecisionName(attention.precision)
      << ")\n\nTokens\n ";
  for (const std::string& label : attention.Labels()) out << " " << label;
  out << "\n";
  if (!choice.layer) {
    if (habits.kinds.empty()) return;  // nothing but special tokens
    PrintShares(out, habits);
    PrintLinks(out, attention);
    PrintHabits(out, habits);
    return;
  }
  const ConstView layer = attention.layer(*choice.layer);
  out << "\nHow much each token (a row) attends to each (a column), layer " << *choice.layer + 1;
  if (choice.head) {
    out << ", head " << *choice.head + 1 << "\n";
    PrintMap(out, attention, layer[*choice.head], style);
    return;
  }
  out << ", mean over heads\n";
  const Tensor mean = MeanOfHeads(layer);
  PrintMap(out, attention, mean.View<float>(), style);
  if (!habits.kinds.empty()) PrintHeadsOf(out, attention, habits, *choice.layer);
}

Json ModelAttentionToJson(const ModelAttention& attention, const AttentionHabits& habits,
                          const AttentionChoice& choice) {
  Json json;
  json["model"] = attention.model;
  json["precision"] = PrecisionName(attention.precision);
  json["text"] = attention.text;
  Json& tokens = json["tokens"] = Json::array();
  for (const ModelToken& token : attention.tokens) {
    tokens.push_back({{"token", token.label},
                      {"id", token.id},
                      {"special", token.special},
                      {"text", token.second ? 2 : 1}});
  }
  json["layers"] = attention.layers();
  json["heads"] = attention.heads;
  json["kinds"] = habits.kinds;
  json["shares_of_layers"] = habits.layers;
  json["shares_of_heads"] = habits.heads;
  if (choice.layer) {
    const ConstView layer = attention.layer(*choice.layer);
    json["layer"] = *choice.layer + 1;
    if (choice.head) json["head"] = *choice.head + 1;
    json["weights"] = ViewToJson(choice.head ? layer[*choice.head] : layer);
    return json;
  }
  Json& weights = json["weights"] = Json::array();
  for (size_t i = 0; i < attention.layers(); ++i) {
    weights.push_back(ViewToJson(attention.layer(i)));
  }
  return json;
}

}  // namespace encore::tool
