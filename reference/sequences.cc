// SPDX-License-Identifier: Apache-2.0
//
// Copies rows of sequences.

#include "reference/sequences.h"

namespace encore {

std::vector<size_t> Starts(const std::vector<size_t>& lengths) {
  std::vector<size_t> starts{0};
  for (const size_t length : lengths) starts.push_back(starts.back() + length);
  return starts;
}

std::span<const float> RowsOf(std::span<const float> x, std::span<const size_t> starts,
                              size_t d_model, size_t b) {
  return x.subspan(starts[b] * d_model, (starts[b + 1] - starts[b]) * d_model);
}

std::vector<std::vector<float>> Split(std::span<const float> x, std::span<const size_t> starts,
                                      size_t d_model) {
  std::vector<std::vector<float>> sequences;
  for (size_t b = 0; b + 1 < starts.size(); ++b) {
    const std::span<const float> rows = RowsOf(x, starts, d_model, b);
    sequences.emplace_back(rows.begin(), rows.end());
  }
  return sequences;
}

JoinedSequences Join(const std::vector<std::vector<float>>& sequences,
                     const std::vector<size_t>& order, size_t d_model) {
  JoinedSequences joined{{0}, {}};
  for (const size_t i : order) {
    joined.x.insert(joined.x.end(), sequences[i].begin(), sequences[i].end());
    joined.starts.push_back(joined.x.size() / d_model);
  }
  return joined;
}

}  // namespace encore
