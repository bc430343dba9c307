// SPDX-License-Identifier: Apache-2.0
//
// An encoder's results against the double-precision reference.

#ifndef ENCORE_TESTS_SUPPORT_CHECK_MODEL_H_
#define ENCORE_TESTS_SUPPORT_CHECK_MODEL_H_

#include <cstddef>
#include <vector>

#include "encore/encoder.h"
#include "reference/encoder_model.h"

namespace encore {

// Runs a batch of these lengths on every target, input of that scale, and compares y and all taps
// within the bounds that rounding in f32 gives; taps change no bit of y, in place neither, and a
// row of each sequence has the same bits if only these are wanted.
// *worst becomes the largest error so far as a share of its bound.
void CheckModel(const EncoderModel& model, const std::vector<size_t>& lengths, double* worst,
                const AttentionMask& mask = {}, float scale = 1);

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_CHECK_MODEL_H_
