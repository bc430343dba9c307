// SPDX-License-Identifier: Apache-2.0
//
// Encoder::ForwardRows against Forward.

#ifndef ENCORE_TESTS_SUPPORT_OUTPUT_ROWS_H_
#define ENCORE_TESTS_SUPPORT_OUTPUT_ROWS_H_

#include <span>
#include <vector>

#include "encore/encoder.h"
#include "gtest/gtest.h"

namespace encore {

// The wanted row of each sequence in y, [tokens, d_model].
std::vector<float> TakeRows(std::span<const float> y, std::span<const size_t> starts,
                            size_t d_model, OutputRows rows);

// Whether ForwardRows gives these rows of y, which is Forward's of the same batch, bit by bit: the
// first rows and the last ones, in views with gaps between rows, outside of which nothing is
// written. Sequences without a token are left out of the batch.
testing::AssertionResult SameOutputRows(const Encoder& encoder, const Batch& batch,
                                        const std::vector<float>& x, const std::vector<float>& y,
                                        const Executor& executor = {}, const Taps& taps = {});

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_OUTPUT_ROWS_H_
