// SPDX-License-Identifier: Apache-2.0
//
// Sequences put together into packed batches, and taken apart again.

#ifndef ENCORE_REFERENCE_SEQUENCES_H_
#define ENCORE_REFERENCE_SEQUENCES_H_

#include <cstddef>
#include <span>
#include <vector>

namespace encore {

// The sequence starts of these lengths.
std::vector<size_t> Starts(const std::vector<size_t>& lengths);

// Sequence b's rows of x, [tokens, d_model].
std::span<const float> RowsOf(std::span<const float> x, std::span<const size_t> starts,
                              size_t d_model, size_t b);

// The rows of each sequence.
std::vector<std::vector<float>> Split(std::span<const float> x, std::span<const size_t> starts,
                                      size_t d_model);

struct JoinedSequences {
  std::vector<size_t> starts;
  std::vector<float> x;  // [tokens, d_model]
};
// Those of the order's numbers, each [length, d_model], one after another.
JoinedSequences Join(const std::vector<std::vector<float>>& sequences,
                     const std::vector<size_t>& order, size_t d_model);

}  // namespace encore

#endif  // ENCORE_REFERENCE_SEQUENCES_H_
