// SPDX-License-Identifier: Apache-2.0
//
// Chains of multiply-adds for peak.h, one set a SIMD target. Not here: clocks and threads
// (bench/peak.cc).

#include "engine/kernels/peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/peak.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// To keep every unit busy takes latency x units chains: 4 x 2 = 8 on Zen and on Intel since
// Skylake, 5 x 2 = 10 on Haswell, 4 x 4 = 16 on Neoverse V1 and Apple's large cores. Twelve and
// three constants fit AVX2's 16 registers, twenty-four the 32 of AVX-512 and NEON. Without FMA a
// chain waits for a multiplication and an addition, 3 + 3 cycles on Zen, two of each a cycle: 12
// chains at the least; fourteen and two constants fit 16 registers.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_ARCH_ARM_A64
constexpr int kChains = 24;
#elif HWY_NATIVE_FMA
constexpr int kChains = 12;
#else
constexpr int kChains = 14;
#endif
constexpr int kStepsPerRound = 4;

// One multiply-add on each chain. The numbers stay in range for ever and their bits keep changing,
// as those of real sums do: each chain swings between two of them.
HWY_INLINE void Step(V (&chain)[kChains], V factor, V x) {
  HWY_UNROLL(24)
  for (int i = 0; i < kChains; ++i) {
#if HWY_NATIVE_FMA
    // As in a matrix product: c + x, and with the factor -1 back to c.
    chain[i] = hn::MulAdd(factor, x, chain[i]);
#else
    // Here factor * x would be worked out once for all. x - c, and then c again.
    chain[i] = hn::MulAdd(chain[i], factor, x);
#endif
  }
}

HWY_NOINLINE double MultiplyAdds(size_t rounds, float* HWY_RESTRICT sink) {
  const D d;
  // The compiler must not know the values.
  volatile float one = 1.0f;
  const V minus = hn::Set(d, -one);
  const V plus = HWY_NATIVE_FMA ? hn::Set(d, one) : minus;
  const V x = hn::Set(d, one / 3.0f);
  V chain[kChains];
  HWY_UNROLL(24)
  for (int i = 0; i < kChains; ++i) chain[i] = hn::Set(d, one + static_cast<float>(i) / 7.0f);
  for (size_t round = 0; round < rounds; ++round) {
    Step(chain, plus, x);
    Step(chain, minus, x);
    Step(chain, plus, x);
    Step(chain, minus, x);
  }
  V sum = chain[0];
  HWY_UNROLL(24)
  for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, chain[i]);
  *sink = hn::ReduceSum(d, sum);
  return 2.0 * kChains * kStepsPerRound * static_cast<double>(hn::Lanes(d)) *
         static_cast<double>(rounds);
}

constexpr PeakKernels kKernels = {.multiply_adds = &MultiplyAdds, .fused = HWY_NATIVE_FMA != 0};

const PeakKernels* TargetPeakKernels() { return &kKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::internal {

HWY_EXPORT(TargetPeakKernels);

const PeakKernels& GetPeakKernels() { return *HWY_DYNAMIC_DISPATCH(TargetPeakKernels)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE
