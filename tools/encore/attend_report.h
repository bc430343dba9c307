// SPDX-License-Identifier: Apache-2.0
//
// A computed attention example as text for people, as JSON for programs, as a picture. Not here:
// the computation (attention_example.h).

#ifndef ENCORE_TOOLS_ENCORE_ATTEND_REPORT_H_
#define ENCORE_TOOLS_ENCORE_ATTEND_REPORT_H_

#include <ostream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/encore/attend_case.h"
#include "tools/encore/attention_example.h"
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

// The heat map of the weights as an SVG document.
std::string ExampleToSvg(const AttentionExample& example);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_ATTEND_REPORT_H_
