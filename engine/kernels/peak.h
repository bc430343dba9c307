// SPDX-License-Identifier: Apache-2.0
//
// The yardstick of the benchmarks: as many multiply-adds as one core can do, with no memory in the
// way. Not here: clocks, threads, what is done with the figure (bench/peak.h).

#ifndef ENCORE_ENGINE_KERNELS_PEAK_H_
#define ENCORE_ENGINE_KERNELS_PEAK_H_

#include <cstddef>

namespace encore::internal {

struct PeakKernels {
  // Runs `rounds` (> 0) rounds of independent chains of f32 multiply-adds in registers and returns
  // how many floating point operations that was (2 a lane: one multiplication and one addition).
  // *sink receives a number made of all results, so that none can be left out; it means nothing.
  double (*multiply_adds)(size_t rounds, float* sink);
  // Whether the target has fused multiply-adds. SSE2, SSE4 and EMU128 have not: there a
  // multiply-add is two instructions, and the peak is that of a multiplication and an addition in
  // turn.
  bool fused;
};

// Those of the active SIMD target.
const PeakKernels& GetPeakKernels();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_PEAK_H_
