// SPDX-License-Identifier: Apache-2.0
//
// Compares a computed example with what its case expects. Reading cases is in attend_case.cc.

#include <algorithm>
#include <cmath>

#include "tools/encore/attend_case.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

using Json = nlohmann::json;

std::string Short(double value) { return Formatted("%.1e", value); }

// The tensor a case calls by this name; null if the example has none.
const Tensor* Find(const AttentionExample& example, const std::string& name) {
  const Tensor* found = name == "X"         ? &example.x
                        : name == "Q"       ? &example.q
                        : name == "K"       ? &example.k
                        : name == "V"       ? &example.v
                        : name == "scores"  ? &example.scores
                        : name == "weights" ? &example.weights
                        : name == "output"  ? &example.output
                                            : nullptr;
  return found == nullptr || found->data() == nullptr ? nullptr : found;
}

// The largest error so far; once NaN, always NaN.
void Grow(double& largest, double error) {
  if (!(error <= largest) && !std::isnan(largest)) largest = error;
}

// found has the expected rows, perhaps behind axes of extent 1 (the head).
CaseCheck CompareValues(const std::string& name, const Json& expected, const Tensor& found) {
  CaseCheck check{name, "", false};
  const size_t rank = found.shape().rank();
  const size_t rows = found.shape()[rank - 2];
  const size_t columns = found.shape()[rank - 1];
  const auto* values = static_cast<const float*>(found.data());
  double largest_error = 0;
  bool comparable = expected.is_array() && expected.size() == rows;
  for (size_t r = 0; comparable && r < rows; ++r) {
    comparable = expected[r].is_array() && expected[r].size() == columns;
    for (size_t c = 0; comparable && c < columns; ++c) {
      comparable = expected[r][c].is_number();
      if (!comparable) break;
      const double error =
          std::fabs(static_cast<double>(values[r * columns + c]) - expected[r][c].get<double>());
      Grow(largest_error, error);
    }
  }
  if (!comparable) {
    check.detail = "expected is no matrix of shape " + Shape(rows, columns).ToString();
    return check;
  }
  check.ok = largest_error <= kCaseTolerance;
  check.detail = "largest error " + Short(largest_error) + ", allowed " + Short(kCaseTolerance);
  return check;
}

// Shapes agree if they do without leading axes of extent 1: a batch of one, a single head.
std::vector<size_t> WithoutLeadingOnes(std::vector<size_t> extents) {
  while (extents.size() > 2 && extents.front() == 1) extents.erase(extents.begin());
  return extents;
}

CaseCheck CompareShape(const std::string& name, const std::vector<size_t>& wanted,
                       const Tensor& found) {
  std::vector<size_t> extents;
  for (size_t i = 0; i < found.shape().rank(); ++i) extents.push_back(found.shape()[i]);
  std::string text;
  for (size_t extent : wanted) text += (text.empty() ? "[" : ", ") + std::to_string(extent);
  return {"shape of " + name, "found " + found.shape().ToString() + ", wanted " + text + "]",
          WithoutLeadingOnes(extents) == WithoutLeadingOnes(wanted)};
}

// A weight carries the roundings of its exponential and of its division, and that of the f32 sum of
// S terms it is divided by, which all of a row share: (S + 4) 2^-24 covers them.
CaseCheck CheckRowSums(const Tensor& weights) {
  const size_t columns = weights.shape()[weights.shape().rank() - 1];
  const size_t rows = weights.size_bytes() / sizeof(float) / columns;
  const auto* values = static_cast<const float*>(weights.data());
  double largest_error = 0;
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) sum += static_cast<double>(values[r * columns + c]);
    Grow(largest_error, std::fabs(sum - 1));
  }
  const double allowed = static_cast<double>(columns + 4) / (1 << 24);
  return {"rows of weights sum to 1",
          "largest error " + Short(largest_error) + ", allowed " + Short(allowed),
          largest_error <= allowed};
}

}  // namespace

std::vector<CaseCheck> CheckCase(const Json& spec, const AttentionExample& example) {
  std::vector<CaseCheck> checks;
  for (const char* name : {"Q", "K", "V", "scores", "weights", "output"}) {
    const bool is_input = !example.has_x() && *name >= 'A' && *name <= 'Z';
    if (!spec.contains(name) || is_input) continue;
    checks.push_back(CompareValues(name, spec[name], *Find(example, name)));
  }
  if (spec.contains("shapes")) {
    if (!spec["shapes"].is_object()) throw Failure(CaseLabel(spec) + ": shapes is not an object");
    for (const auto& [name, unused] : spec["shapes"].items()) {
      const Tensor* found = Find(example, name);
      if (found == nullptr) {
        throw Failure(CaseLabel(spec) + ": shapes names an unknown tensor");
      }
      Json named = spec["shapes"];
      named["name"] = spec["name"];
      checks.push_back(CompareShape(name, ExtentsFromCase(named, name), *found));
    }
  }
  checks.push_back(CheckRowSums(example.weights));
  return checks;
}

}  // namespace encore::tool
