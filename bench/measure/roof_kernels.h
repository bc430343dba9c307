// SPDX-License-Identifier: Apache-2.0
//
// The yardsticks of the benchmarks: as many multiply-adds of each element type as one core can do,
// with no memory in the way, and as many bytes as it can read, with no arithmetic in the way.
// Clocks and threads are in peak.h and read.h.

#ifndef ENCORE_BENCH_MEASURE_ROOF_KERNELS_H_
#define ENCORE_BENCH_MEASURE_ROOF_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace encore::inline v0_1::internal {

struct PeakKernels {
  // Runs `rounds` (> 0) rounds of independent chains of multiply-adds in registers and returns how
  // many operations that was (2 a product: one multiplication and one addition). *sink receives a
  // number made of all results, so that none can be left out; it means nothing.
  using MultiplyAdds = double (*)(size_t rounds, float* sink);
  MultiplyAdds multiply_adds;  // of f32
  // As the micro-kernels multiply these (gemm_bf16.cc, gemm_int8.cc, gemm_int4.cc): by the
  // machine's dot product, or f32 multiply-adds of bf16, int8 by products of numbers widened to 16
  // bits, and int4 by sums in 16 bits.
  MultiplyAdds bf16;
  MultiplyAdds bf16_amx;  // or null, as int8_amx; gemm_amx-inl.h
  MultiplyAdds int8;
  MultiplyAdds int8_amx;
  MultiplyAdds int4;
  // Reads data[0 .. count) `rounds` times, the whole of it each time, and returns how many bytes
  // that was. count is a multiple of kReadStep. *sink as above.
  double (*read)(const uint32_t* data, size_t count, size_t rounds, uint32_t* sink);
  static constexpr size_t kReadStep = 1024;
  // Whether the target has fused multiply-adds. SSE2, SSE4 and EMU128 do not: there a
  // multiply-add is two instructions, and the peak is that of a multiplication and an addition in
  // turn.
  bool fused;
};

// Those of the active SIMD target.
const PeakKernels& GetPeakKernels();

}  // namespace encore::internal

#endif  // ENCORE_BENCH_MEASURE_ROOF_KERNELS_H_
