// SPDX-License-Identifier: Apache-2.0
//
// Chains of multiply-adds and of loads for roof_kernels.h, one set a SIMD target.

#include "bench/measure/roof_kernels.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/base/bf16.h"
#include "engine/base/strict_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/measure/roof_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/dispatch.h"
#include "engine/kernels/gemm_amx-inl.h"
#include "engine/kernels/gemm_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// To keep every unit busy takes latency x units chains: 4 x 2 = 8 on Zen and on Intel since
// Skylake, 5 x 2 = 10 on Haswell, 4 x 4 = 16 on Neoverse V1 and Apple's large cores. Twelve and
// three constants fit AVX2's 16 registers, twenty-four the 32 of AVX-512 and NEON. Without FMA a
// chain waits for a multiplication and an addition, 3 + 3 cycles on Zen, two of each a cycle: 12
// chains at the least; fourteen and two constants fit 16 registers.
#if ENCORE_32_REGISTERS
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

using TagI32 = hn::RebindToSigned<D>;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_ZEN4
// Two products a lane.
struct DotBf16 {
  static constexpr int kSums = kChains;
  using Tag = hn::Repartition<hwy::bfloat16_t, D>;
  using TagBits = hn::RebindToUnsigned<D>;
  static constexpr double kProducts = 2;
  static V Start(int i) { return hn::Set(D(), static_cast<float>(i) / 7.0f); }
  static hn::Vec<Tag> A(int v) { return B(v); }
  static hn::Vec<Tag> B(int v) {
    const float third = static_cast<float>(v) / 3.0f;
    const uint32_t bits = hwy::BitCastScalar<uint32_t>(third) >> 16;
    return hn::BitCast(Tag(), hn::Set(TagBits(), bits << 16 | bits));
  }
  static HWY_INLINE V MulAdd(hn::Vec<Tag> a, hn::Vec<Tag> b, V sum) {
    V unused = hn::Zero(D());
    return hn::ReorderWidenMulAccumulate(D(), a, b, sum, unused);
  }
  static float Total(V sum) { return hn::ReduceSum(D(), sum); }
};
#endif

// Integers: four products of a lane, or two that take an addition of their own.
#define ENCORE_MULTIPLIES_BYTES \
  ((HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL) || ENCORE_TARGET_HAS_SDOT)
struct DotInt8 {
#if ENCORE_MULTIPLIES_BYTES
  using TagA = hn::Repartition<uint8_t, D>;
  using TagB = hn::Repartition<int8_t, D>;
  static constexpr double kProducts = 4;
  static constexpr int kSums = kChains;
#else
  // Only the addition waits for the one before, for a cycle or two: few chains suffice, and more
  // would leave no registers for the products.
  static constexpr int kSums = kChains == 24 ? 12 : 8;
  using TagA = hn::Repartition<int16_t, D>;
  using TagB = hn::Repartition<int16_t, D>;
  static constexpr double kProducts = 2;
#endif
  using Sum = hn::Vec<TagI32>;
  static Sum Start(int i) { return hn::Set(TagI32(), i * 1001); }
  static hn::Vec<TagA> A(int v) { return hn::Set(TagA(), static_cast<hn::TFromD<TagA>>(v * 85)); }
  static hn::Vec<TagB> B(int v) { return hn::Set(TagB(), static_cast<hn::TFromD<TagB>>(v * 77)); }
  static HWY_INLINE Sum MulAdd(hn::Vec<TagA> a, hn::Vec<TagB> b, Sum sum) {
#if ENCORE_TARGET_HAS_SDOT
    return AddDotProducts(hn::GetLane(hn::BitCast(D(), a)), b, sum);
#elif ENCORE_MULTIPLIES_BYTES
    return hn::SumOfMulQuadAccumulate(TagI32(), a, b, sum);
#else
    return hn::Add(sum, hn::WidenMulPairwiseAdd(TagI32(), a, b));
#endif
  }
  static float Total(Sum sum) { return static_cast<float>(hn::ReduceSum(TagI32(), sum)); }
};

#if ENCORE_MULTIPLIES_BYTES
using DotInt4 = DotInt8;
#else
// Two sums of 16 bits a lane, each of two products.
struct DotInt4 {
  using TagA = hn::Repartition<uint8_t, D>;
  using TagB = hn::Repartition<int8_t, D>;
  using TagI16 = hn::Repartition<int16_t, D>;
  static constexpr double kProducts = 4;
  // SSE2 multiplies by several instructions, which need registers.
  static constexpr int kSums = HWY_TARGET == HWY_SSE2 ? 4 : DotInt8::kSums;
  using Sum = hn::Vec<TagI16>;
  static Sum Start(int i) { return hn::Set(TagI16(), static_cast<int16_t>(i * 101)); }
  static hn::Vec<TagA> A(int v) { return hn::Set(TagA(), static_cast<uint8_t>(v * 85)); }
  static hn::Vec<TagB> B(int v) { return hn::Set(TagB(), static_cast<int8_t>(v * 7)); }
  static HWY_INLINE Sum MulAdd(hn::Vec<TagA> a, hn::Vec<TagB> b, Sum sum) {
    return hn::Add(sum, hn::SatWidenMulPairwiseAdd(TagI16(), a, b));
  }
  static float Total(Sum sum) { return static_cast<float>(hn::GetLane(sum)); }
};
#endif
#undef ENCORE_MULTIPLIES_BYTES

template <class Type, class A, class B, class Sum, size_t kSums>
HWY_INLINE void DotStep(A& a, B b, Sum (&sums)[kSums]) {
  HWY_UNROLL(24)
  for (size_t i = 0; i < kSums; ++i) {
    ENCORE_PIN(a);  // else a product of the same two would be made once for all
    sums[i] = Type::MulAdd(a, b, sums[i]);
    ENCORE_PIN(sums[i]);
  }
}

// The same walk for these types.
template <class Type>
HWY_NOINLINE double DotProducts(size_t rounds, float* HWY_RESTRICT sink) {
  constexpr int kSums = Type::kSums;
  volatile int one = 1;
  auto a = Type::A(one);
  const auto plus = Type::B(one);
  const auto minus = Type::B(-one);
  decltype(Type::Start(0)) sums[kSums];
  HWY_UNROLL(24)
  for (int i = 0; i < kSums; ++i) sums[i] = Type::Start(one + i);
  for (size_t round = 0; round < rounds; ++round) {
    DotStep<Type>(a, plus, sums);
    DotStep<Type>(a, minus, sums);
    DotStep<Type>(a, plus, sums);
    DotStep<Type>(a, minus, sums);
  }
  float total = 0;
  HWY_UNROLL(24)
  for (int i = 0; i < kSums; ++i) total += Type::Total(sums[i]);
  *sink = total;
  return 2.0 * Type::kProducts * kSums * kStepsPerRound * static_cast<double>(hn::Lanes(D())) *
         static_cast<double>(rounds);
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_ZEN4
constexpr PeakKernels::MultiplyAdds kBf16 = &DotProducts<DotBf16>;
#else
constexpr PeakKernels::MultiplyAdds kBf16 = &MultiplyAdds;
#endif

#if ENCORE_TARGET_HAS_AMX
template <bool kInteger, int kB>
HWY_INLINE void AmxStep() {
  amx::MulAdd<0, kInteger, kB>();
  amx::MulAdd<1, kInteger, kB>();
  amx::MulAdd<2, kInteger, kB>();
  amx::MulAdd<3, kInteger, kB>();
  amx::MulAdd<4, kInteger, kB>();
}

// Five tiles of sums swing between two values each, as the chains above do: a tile of B is added,
// and then its negative.
template <bool kInteger>
HWY_NOINLINE double AmxProducts(size_t rounds, float* HWY_RESTRICT sink) {
  constexpr size_t kBytes = amx::kRows * amx::kLine;
  using OfA = std::conditional_t<kInteger, uint8_t, uint16_t>;
  using OfB = std::conditional_t<kInteger, int8_t, uint16_t>;
  constexpr size_t kElements = kBytes / sizeof(OfA);
  alignas(64) OfB plus[kElements];
  alignas(64) OfB minus[kElements];
  alignas(64) OfA a[kElements];
  for (size_t i = 0; i < kElements; ++i) {
    const int b = static_cast<int>(i * 37 % 255) - 127;
    const int of_a = static_cast<int>(i * 91 % 256);
    if constexpr (kInteger) {
      plus[i] = static_cast<OfB>(b);
      minus[i] = static_cast<OfB>(-b);
      a[i] = static_cast<OfA>(of_a);
    } else {
      plus[i] = F32ToBf16(static_cast<float>(b));
      minus[i] = F32ToBf16(static_cast<float>(-b));
      a[i] = F32ToBf16(static_cast<float>(of_a));
    }
  }
  const amx::Tiles tiles(amx::kRows, amx::kGroups);
  amx::Load<0>(a, amx::kLine);
  amx::Load<1>(plus, amx::kLine);
  amx::Load<2>(minus, amx::kLine);
  amx::Load<3>(a, amx::kLine);
  amx::Load<4>(plus, amx::kLine);
  amx::Load<5>(minus, amx::kLine);
  amx::Load<6>(a, amx::kLine);
  amx::Load<7>(plus, amx::kLine);
  for (size_t round = 0; round < rounds; ++round) {
    AmxStep<kInteger, 7>();
    AmxStep<kInteger, 5>();
  }
  amx::Store<0>(a, amx::kLine);
  *sink = static_cast<float>(a[0]);
  return 2.0 * 10 * static_cast<double>(kElements * amx::kRows) * static_cast<double>(rounds);
}
constexpr PeakKernels::MultiplyAdds kBf16Amx = &AmxProducts<false>;
constexpr PeakKernels::MultiplyAdds kInt8Amx = &AmxProducts<true>;
#else
constexpr PeakKernels::MultiplyAdds kBf16Amx = nullptr;
constexpr PeakKernels::MultiplyAdds kInt8Amx = nullptr;
#endif

// Exclusive or has a latency of one cycle and needs no rounding: at up to four loads a cycle, four
// chains keep up, and eight leave the loads as the only bound. What is read changes the result, so
// that no load can be left out; tools/check_spills.py counts them in the loop. Two places at once
// keep two prefetchers busy: from L3 that is a fifth faster on Zen 5, elsewhere all the same, and
// four places are slower from L2.
constexpr size_t kReadChains = 4;  // of each half

HWY_NOINLINE double ReadLoop(const uint32_t* HWY_RESTRICT data, size_t count, size_t rounds,
                             uint32_t* HWY_RESTRICT sink) {
  const hn::ScalableTag<uint32_t> d;
  const size_t lanes = hn::Lanes(d);
  const size_t half = count / 2;
  hn::Vec<decltype(d)> low[kReadChains];
  hn::Vec<decltype(d)> high[kReadChains];
  HWY_UNROLL(4)
  for (size_t i = 0; i < kReadChains; ++i) low[i] = high[i] = hn::Zero(d);
  for (size_t round = 0; round < rounds; ++round) {
    for (size_t at = 0; at < half; at += kReadChains * lanes) {
      HWY_UNROLL(4)
      for (size_t i = 0; i < kReadChains; ++i) {
        low[i] = hn::Xor(low[i], hn::Load(d, data + at + i * lanes));
        high[i] = hn::Xor(high[i], hn::Load(d, data + half + at + i * lanes));
      }
    }
    ENCORE_PIN(low[0]);  // else two rounds might be known to cancel each other
  }
  HWY_UNROLL(4)
  for (size_t i = 0; i < kReadChains; ++i)
    low[0] = i == 0 ? hn::Xor(low[0], high[0]) : hn::Xor3(low[0], low[i], high[i]);
  *sink = static_cast<uint32_t>(hn::ReduceSum(d, low[0]));
  return static_cast<double>(sizeof(uint32_t) * count) * static_cast<double>(rounds);
}

constexpr PeakKernels kKernels = {.multiply_adds = &MultiplyAdds,
                                  .bf16 = kBf16,
                                  .bf16_amx = kBf16Amx,
                                  .int8 = &DotProducts<DotInt8>,
                                  .int8_amx = kInt8Amx,
                                  .int4 = &DotProducts<DotInt4>,
                                  .read = &ReadLoop,
                                  .fused = HWY_NATIVE_FMA != 0};

const PeakKernels* TargetPeakKernels() { return &kKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetPeakKernels);

const PeakKernels& GetPeakKernels() { return *ENCORE_DISPATCH(TargetPeakKernels)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE
