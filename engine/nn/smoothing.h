// SPDX-License-Identifier: Apache-2.0
//
// Smoothing of a product before it is quantised to int8 (SmoothQuant, arXiv:2211.10438): x w =
// (x / s) (s w) for a scale s of each input channel, so that no channel uses up a row's 8 bits.

#ifndef ENCORE_ENGINE_NN_SMOOTHING_H_
#define ENCORE_ENGINE_NN_SMOOTHING_H_

#include <cstddef>

#include "engine/nn/packed_layer.h"
#include "engine/ops/weight_source.h"

namespace encore::inline v0_1::internal {

// sums[k] = the sum of squares of column k over rows [begin, end) of the source, for columns
// [first, last), added up row by row.
void SumSquares(const WeightSource& source, size_t begin, size_t end, size_t first, size_t last,
                float* sums);

// Scales without data: s_k = sqrt(m_k / c_k), with c_k the root of sums[k] and m_k = |gamma_k| +
// |beta_k| of the norm that makes the input, or 1 if unknown: estimates of the largest weights and
// inputs. m and c are at least 2^-10 of their largest, s is at most 1 and at least 2^-8. sums [k]
// becomes s.
void ScalesFromNorm(const PackedNorm* norm, size_t k, float* sums);

// Scales from measurements: s_k = sqrt(m_k / c_k), with m_k the largest magnitudes of inputs and
// c_k those of weights. All ones if all of m or of c is 0, or far outside of a product's range. c
// [k] becomes s.
void ScalesFromMagnitudes(const float* m, size_t k, float* c);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_SMOOTHING_H_
