// SPDX-License-Identifier: Apache-2.0
//
// A model's attention as a picture: every head of every layer as a small heat map, and one of them
// large, as curves between the tokens. Not here: pictures of one matrix (svg.h).

#ifndef ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_SVG_H_
#define ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_SVG_H_

#include <cstddef>
#include <string>

#include "tools/encore/attention_habits.h"
#include "tools/encore/model_attention.h"
#include "tools/encore/model_attention_report.h"

namespace encore::tool {

// More would be unreadable.
inline constexpr size_t kMostPicturedTokens = 64;

// A whole SVG document of less than 300 KB that needs nothing else; its colours follow the reader's
// light or dark page. The large head is the chosen one, or the mean of the chosen layer, or the
// most telling head. Throws Failure for more tokens than kMostPicturedTokens.
std::string ModelAttentionSvg(const ModelAttention& attention, const AttentionHabits& habits,
                              const AttentionChoice& choice);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_MODEL_ATTENTION_SVG_H_
