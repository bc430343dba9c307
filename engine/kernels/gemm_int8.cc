// SPDX-License-Identifier: Apache-2.0
//
// The int8 micro-kernels of every SIMD target: unsigned rows, signed columns, exact 32-bit sums.
// Four products at a time where there is an instruction that does not saturate (VPDPBUSD; SDOT for
// rows that hold 128 less), else two of numbers widened to 16 bits (VPMADDWD): VPMADDUBSW would
// saturate at 255 * 127 twice.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/base/strict_math.h"
// AVX3_ZEN4's products of integers are AVX3_DL's.
#define ENCORE_SAME_ON_AVX3 HWY_AVX3_ZEN4
#include "engine/kernels/fewer_avx3.h"
#include "engine/kernels/gemm_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gemm_int8.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/byte_rows-inl.h"
#include "engine/kernels/dispatch.h"
#include "engine/kernels/gemm_amx-inl.h"
#include "engine/kernels/gemm_tiles-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

using TagI32 = hn::RebindToSigned<GemmTagF32>;
using TagU32 = hn::RebindToUnsigned<GemmTagF32>;
using VecF32 = hn::Vec<GemmTagF32>;
using VecI32 = hn::Vec<TagI32>;

#define ENCORE_MULTIPLIES_BYTES \
  ((HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL) || ENCORE_TARGET_HAS_SDOT)
// Bytes of B that are widened as they are loaded halve its memory. Tiles of AVX2 take no longer for
// it (measured on Zen 3), of SSE4 some percent.
#define ENCORE_WIDENS_BYTES (HWY_TARGET == HWY_AVX2)
#if ENCORE_MULTIPLIES_BYTES
using AElement = uint8_t;
using BElement = int8_t;
using TagA = hn::Repartition<uint8_t, GemmTagF32>;
using TagB = hn::Repartition<int8_t, GemmTagF32>;
#else
using AElement = uint16_t;  // 0 .. 255, as the instruction wants both
using TagA = hn::Repartition<int16_t, GemmTagF32>;
using BElement = std::conditional_t<ENCORE_WIDENS_BYTES, int8_t, int16_t>;
using TagB = TagA;
#endif

struct TypeInt8 {
  using AWord = uint32_t;
  static constexpr size_t kGroup = sizeof(AWord) / sizeof(AElement);
  using Word = hwy::UnsignedFromSize<kGroup * sizeof(BElement)>;
  static constexpr bool kInteger = true;
  static constexpr bool kFloatSums = false;
#if ENCORE_TARGET_HAS_SDOT
  static HWY_INLINE float Spread(const AWord& word) { return hwy::BitCastScalar<float>(word); }
#else
  static HWY_INLINE hn::Vec<TagA> Spread(const AWord& word) {
    return hn::BitCast(TagA(), hn::Set(TagU32(), word));
  }
#endif
  static HWY_INLINE hn::Vec<TagB> Load(const Word* words) {
    const hn::Rebind<BElement, TagB> d;
    const auto b = hn::LoadU(d, reinterpret_cast<const BElement*>(words));
#if ENCORE_WIDENS_BYTES
    return hn::PromoteTo(TagB(), b);
#else
    return b;
#endif
  }
#if ENCORE_TARGET_HAS_SDOT
  static HWY_INLINE VecF32 MulAdd(float a, hn::Vec<TagB> b, VecF32 sum) {
    return AddDotProducts(a, b, sum);
  }
#else
  static HWY_INLINE VecF32 MulAdd(hn::Vec<TagA> a, hn::Vec<TagB> b, VecF32 sum) {
    const TagI32 di;
#if ENCORE_MULTIPLIES_BYTES
    return hn::BitCast(GemmTagF32(), hn::SumOfMulQuadAccumulate(di, a, b, hn::BitCast(di, sum)));
#else
    return hn::BitCast(GemmTagF32(),
                       hn::Add(hn::BitCast(di, sum), hn::WidenMulPairwiseAdd(di, a, b)));
#endif
  }
#endif

// MR * NV accumulators, NV vectors of B, one of A and, where numbers are widened, a product. The
// latency is 4 or 5 and two go a cycle: 10 accumulators or more.
#if ENCORE_32_REGISTERS
  static constexpr size_t kMaxMr[] = {0, 12, 8, 8, 6};
  static constexpr size_t kBestNv = 3;
  static constexpr size_t kWidePanels[][3] = {{}, {}, {}, {}, {}};
#else  // 16 registers
  static constexpr size_t kMaxMr[] = {0, 8, 6, 3, 0};
  static constexpr size_t kBestNv = 2;
  static constexpr size_t kWidePanels[][3] = {{}, {}, {0, 4, 2}, {0, 3, 0}, {}};
#endif
};
#undef ENCORE_MULTIPLIES_BYTES
#undef ENCORE_WIDENS_BYTES

// Packs floats that are integers, -128 .. 127.
struct PackInt8 {
  static constexpr size_t kGroup = TypeInt8::kGroup;
  static TypeInt8::Word ToWord(const float* e) {
    constexpr size_t kBits = 8 * sizeof(BElement);
    uint32_t word = 0;
    for (size_t i = 0; i < kGroup; ++i) {
      const uint32_t bits = static_cast<uint32_t>(static_cast<int32_t>(e[i]));
      word |= (bits & (0xFFFFFFFFu >> (32 - kBits))) << (i * kBits);
    }
    return static_cast<TypeInt8::Word>(word);
  }
  static void ToWords(const float* in, size_t words, TypeInt8::Word* out) {
    const GemmTagF32 d;
    const TagI32 di;
    const hn::Rebind<BElement, GemmTagF32> db;
    const size_t lanes = hn::Lanes(d);
    auto* bytes = reinterpret_cast<BElement*>(out);
    const size_t count = words * kGroup;
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const VecI32 integers = hn::ConvertTo(di, hn::LoadU(d, in + i));
      hn::StoreU(hn::DemoteTo(db, integers), db, bytes + i);
    }
    for (; i < count; ++i) bytes[i] = static_cast<BElement>(in[i]);
  }
};

constexpr GemmKernel kKernel =
    KernelOf<TypeInt8, PackInt8>(&PackLhsBytes<AElement, TypeInt8::kGroup>);

const GemmKernel* TargetGemmKernelInt8() { return &kKernel; }

#if ENCORE_TARGET_HAS_AMX
constexpr GemmKernel kAmxKernel = [] {
  GemmKernel kernel = KernelOf<TypeInt8, PackInt8, amx::Blocks<TypeInt8>>(
      &PackLhsBytes<AElement, TypeInt8::kGroup>);
  kernel.target = "AMX";
  return kernel;
}();
#else
constexpr const GemmKernel& kAmxKernel = kKernel;
#endif

const GemmKernel* TargetGemmKernelInt8Amx() { return &kAmxKernel; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetGemmKernelInt8);
HWY_EXPORT(TargetGemmKernelInt8Amx);

const GemmKernel& GetGemmKernelInt8() { return *ENCORE_DISPATCH(TargetGemmKernelInt8)(); }
const GemmKernel& GetGemmKernelInt8Amx() { return *ENCORE_DISPATCH(TargetGemmKernelInt8Amx)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE
