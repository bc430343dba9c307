// SPDX-License-Identifier: Apache-2.0
//
// A model's attention as text for people and as JSON for programs. Layers and heads are counted
// from 1 there, as in the command's options. Not here: the picture (model_attention_svg.h).

#ifndef ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_REPORT_H_
#define ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_REPORT_H_

#include <cstddef>
#include <optional>
#include <ostream>

#include "nlohmann/json.hpp"
#include "tools/encore/attention_habits.h"
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

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_REPORT_H_
