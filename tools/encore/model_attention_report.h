// SPDX-License-Identifier: Apache-2.0
//
// A model's attention as text for people, as JSON for programs, and as a picture: every head of
// every layer as a small heat map, and one of them large, as curves between the tokens. Layers and
// heads are counted from 1 there, as in the command's options. Not here: pictures of one matrix
// (svg.h).

#ifndef ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_REPORT_H_
#define ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_REPORT_H_

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>

#include "nlohmann/json.hpp"
#include "tools/encore/model_attention.h"
#include "tools/encore/terminal.h"

namespace encore::tool {

// What is looked at, counted from 0. Neither: the whole model; a layer alone: the mean of its
// heads.
struct AttentionChoice {
  std::optional<size_t> layer;
  std::optional<size_t> head;  // with a layer only
};

void PrintModelAttention(std::ostream& out, const ModelAttention& attention,
                         const AttentionHabits& habits, const AttentionChoice& choice,
                         const MatrixStyle& style);

// tokens, habits, and weights: [T, T] of one head, [heads, T, T] of one layer, else [layers, heads,
// T, T].
nlohmann::ordered_json ModelAttentionToJson(const ModelAttention& attention,
                                            const AttentionHabits& habits,
                                            const AttentionChoice& choice);

// More would be unreadable.
inline constexpr size_t kMostPicturedTokens = 64;

// A whole SVG document of less than 300 KB that needs nothing else; its colours follow the reader's
// light or dark page. The large head is the chosen one, or the mean of the chosen layer, or the
// most telling head. Throws Failure for more tokens than kMostPicturedTokens.
std::string ModelAttentionSvg(const ModelAttention& attention, const AttentionHabits& habits,
                              const AttentionChoice& choice);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_REPORT_H_
