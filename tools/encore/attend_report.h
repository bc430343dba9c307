// SPDX-License-Identifier: Apache-2.0
//
// What `encore attend` computed as text for people and as JSON for programs: an
// attention example, step by step; or a model's attention, every head of every layer. Layers and
// heads of a model are counted from 1 there, as in the command's options. python/pyencore/lab draws
// the JSON.

#ifndef ENCORE_TOOLS_ENCORE_ATTEND_REPORT_H_
#define ENCORE_TOOLS_ENCORE_ATTEND_REPORT_H_

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/encore/attend_case.h"
#include "tools/encore/attention_example.h"
#include "tools/encore/model_attention.h"
#include "tools/encore/terminal.h"

namespace encore::tool {

// Every step with its matrix, who attends to whom, and the lines that do the same in NumPy.
void PrintExample(std::ostream& out, const AttentionExample& example, const MatrixStyle& style);

// One line a check, and whether all are right.
void PrintChecks(std::ostream& out, const std::vector<CaseCheck>& checks);

// The same fields as a case (attend_case.h): tokens, X, W_q ... output, and attends_most, a list of
// {head, token, to, weight}. scores and weights are [T, S], or [H, T, S] with several heads.
nlohmann::ordered_json ExampleToJson(const AttentionExample& example);
nlohmann::ordered_json ChecksToJson(const std::vector<CaseCheck>& checks);

// Nested lists, numbers as a person would write them (0.1, not 0.10000000149).
nlohmann::ordered_json ViewToJson(ConstView view);

// "6 tokens, width 8, 1 head, seed 42".
std::string Sizes(const AttentionExample& example);

// What is looked at in a model, counted from 0. Neither: the whole model; a layer alone: the mean
// of its heads.
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

#endif  // ENCORE_TOOLS_ENCORE_ATTEND_REPORT_H_
