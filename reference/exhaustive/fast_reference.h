// SPDX-License-Identifier: Apache-2.0
//
// The references of reference/elementwise.h for many floats at a time, in double precision
// and a tenth of the time: loops without branches or calls, which compilers make vectors of. Each
// is within kFastError of the C library's result, relative to it; exhaustive_test.cc and the tool
// itself (search.cc) compare. For finite x; what NaN and inf give means nothing.

#ifndef ENCORE_REFERENCE_EXHAUSTIVE_FAST_REFERENCE_H_
#define ENCORE_REFERENCE_EXHAUSTIVE_FAST_REFERENCE_H_

#include <cstddef>

namespace encore::tool {

inline constexpr double kFastError = 0x1p-40;

// x and exact: [n].
void FastExp(const float* x, double* exact, size_t n);
void FastTanh(const float* x, double* exact, size_t n);
void FastRelu(const float* x, double* exact, size_t n);
void FastGelu(const float* x, double* exact, size_t n);
void FastGeluTanh(const float* x, double* exact, size_t n);
void FastSilu(const float* x, double* exact, size_t n);
void FastQuickGelu(const float* x, double* exact, size_t n);

// e^(scale x).
void FastScaledExp(float scale, const float* x, double* exact, size_t n);

}  // namespace encore::tool

#endif  // ENCORE_REFERENCE_EXHAUSTIVE_FAST_REFERENCE_H_
