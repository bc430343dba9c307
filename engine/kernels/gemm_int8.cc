// SPDX-License-Identifier: Apache-2.0
//
// The int8 micro-kernels of every SIMD target: unsigned rows, signed columns, exact 32-bit sums.
// Four products at a time where there is an instruction that does not saturate (VPDPBUSD), else two
// of numbers widened to 16 bits (VPMADDWD): VPMADDUBSW would saturate at 255 * 127 twice.

#include <cstddef>
#include <cstdint>

#include "engine/kernels/gemm_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gemm_int8.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/gemm_tiles-inl.h"
#include "engine/kernels/gemm_words-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {
namespace {

using TagI32 = hn::RebindToSigned<GemmTagF32>;
using TagU32 = hn::RebindToUnsigned<GemmTagF32>;
using VecF32 = hn::Vec<GemmTagF32>;
using VecI32 = hn::Vec<TagI32>;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL

using TagI8 = hn::Repartition<int8_t, GemmTagF32>;
using TagU8 = hn::Repartition<uint8_t, GemmTagF32>;

struct TypeInt8 {
  using AElement = uint8_t;
  using BElement = int8_t;
  using AWord = uint32_t;
  using Word = uint32_t;
  static constexpr size_t kGroup = 4;
  static constexpr bool kInteger = true;
  static HWY_INLINE hn::Vec<TagU8> Spread(const AWord& word) {
    return hn::BitCast(TagU8(), hn::Set(TagU32(), word));
  }
  static HWY_INLINE hn::Vec<TagI8> Load(const Word* words) {
    return hn::BitCast(TagI8(), hn::LoadU(TagU32(), words));
  }
  static HWY_INLINE VecF32 MulAdd(hn::Vec<TagU8> a, hn::Vec<TagI8> b, VecF32 sum) {
    const TagI32 di;
    return hn::BitCast(GemmTagF32(), hn::SumOfMulQuadAccumulate(di, a, b, hn::BitCast(di, sum)));
  }

  // Latency 4 or 5 and two a cycle: 10 accumulators or more.
  static constexpr size_t kMaxMr[] = {0, 12, 8, 8, 6};
  static constexpr size_t kBestNv = 3;
  static constexpr size_t kWidePanels[][3] = {{}, {}, {}, {}, {}};
};

#else

using TagI16 = hn::Repartition<int16_t, GemmTagF32>;

struct TypeInt8 {
  using AElement = int16_t;
  using BElement = int16_t;
  using AWord = uint32_t;
  using Word = uint32_t;
  static constexpr size_t kGroup = 2;
  static constexpr bool kInteger = true;
  static HWY_INLINE hn::Vec<TagI16> Spread(const AWord& word) {
    return hn::BitCast(TagI16(), hn::Set(TagU32(), word));
  }
  static HWY_INLINE hn::Vec<TagI16> Load(const Word* words) {
    return hn::BitCast(TagI16(), hn::LoadU(TagU32(), words));
  }
  static HWY_INLINE VecF32 MulAdd(hn::Vec<TagI16> a, hn::Vec<TagI16> b, VecF32 sum) {
    const TagI32 di;
    return hn::BitCast(GemmTagF32(),
                       hn::Add(hn::BitCast(di, sum), hn::WidenMulPairwiseAdd(di, a, b)));
  }

// MR * NV accumulators, NV vectors of B, one of A and a product.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86 || HWY_ARCH_ARM_A64  // 32 registers
  static constexpr size_t kMaxMr[] = {0, 12, 8, 8, 6};
  static constexpr size_t kBestNv = 3;
  static constexpr size_t kWidePanels[][3] = {{}, {}, {}, {}, {}};
#else                                                           // 16 registers
  static constexpr size_t kMaxMr[] = {0, 8, 6, 3, 0};
  static constexpr size_t kBestNv = 2;
  static constexpr size_t kWidePanels[][3] = {{}, {}, {0, 4, 2}, {0, 3, 0}, {}};
#endif
};

#endif

// Packs floats that are integers, -128 .. 127.
struct PackInt8 {
  static constexpr size_t kGroup = TypeInt8::kGroup;
  static uint32_t ToWord(const float* e) {
    constexpr size_t kBits = 32 / kGroup;
    uint32_t word = 0;
    for (size_t i = 0; i < kGroup; ++i) {
      const uint32_t bits = static_cast<uint32_t>(static_cast<int32_t>(e[i]));
      word |= (bits & (0xFFFFFFFFu >> (32 - kBits))) << (i * kBits);
    }
    return word;
  }
  static void ToWords(const float* in, size_t words, uint32_t* out) {
    const GemmTagF32 d;
    const TagI32 di;
    const hn::Rebind<TypeInt8::BElement, GemmTagF32> db;
    const size_t lanes = hn::Lanes(d);
    auto* bytes = reinterpret_cast<TypeInt8::BElement*>(out);
    const size_t count = words * kGroup;
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const VecI32 integers = hn::ConvertTo(di, hn::LoadU(d, in + i));
      hn::StoreU(hn::DemoteTo(db, integers), db, bytes + i);
    }
    for (; i < count; ++i) bytes[i] = static_cast<TypeInt8::BElement>(in[i]);
  }
};

constexpr float kSmallest = 0x1p-100f;

// 1.5 * 2^23: a float below 2^22 that is added to it is rounded to an integer, which then is the
// difference of the bits.
constexpr float kMagic = 12582912.0f;
constexpr int32_t kMagicBits = 0x4B400000;

// The scale and zero point of numbers in [low, high], which 0 is among; nan is NaN if one of them
// is not finite.
RowQuant QuantOf(float low, float high, float nan) {
  // 0 + NaN, and halves that cannot overflow.
  const float scale = (high / 255.0f - low / 255.0f) + nan;
  if (HWY_MAX(high, -low) < kSmallest) return {nan, 0.0f};
  const float zero_point = (-low / scale + kMagic) - kMagic;  // to nearest
  return {scale, zero_point < 255.0f ? zero_point : 255.0f};
}

// Lowest, highest, and NaN or 0 of a row.
HWY_INLINE RowQuant QuantOfRow(const float* HWY_RESTRICT in, const float* HWY_RESTRICT factor,
                               size_t k) {
  const GemmTagF32 d;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  constexpr size_t kUnroll = 4;
  VecF32 low[kUnroll], high[kUnroll], nan[kUnroll];
  for (size_t u = 0; u < kUnroll; ++u) low[u] = high[u] = nan[u] = hn::Zero(d);
  const auto add = [&](size_t u, VecF32 x) HWY_ATTR {
    low[u] = hn::Min(low[u], x);
    high[u] = hn::Max(high[u], x);
    nan[u] = hn::MulAdd(x, hn::Zero(d), nan[u]);
  };
  const auto load = [&](size_t i) HWY_ATTR {
    const VecF32 x = hn::LoadU(d, in + i);
    return factor == nullptr ? x : hn::Mul(x, hn::LoadU(d, factor + i));
  };
  size_t i = 0;
  for (; i + kUnroll * kLanes <= k; i += kUnroll * kLanes) {
    ENCORE_UNROLL
    for (size_t u = 0; u < kUnroll; ++u) add(u, load(i + u * kLanes));
  }
  for (; i + kLanes <= k; i += kLanes) add(0, load(i));
  if (i < k) {
    const VecF32 x = hn::LoadN(d, in + i, k - i);
    add(1, factor == nullptr ? x : hn::Mul(x, hn::LoadN(d, factor + i, k - i)));
  }
  const VecF32 lows = hn::Min(hn::Min(low[0], low[1]), hn::Min(low[2], low[3]));
  const VecF32 highs = hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3]));
  const VecF32 nans = hn::Add(hn::Add(nan[0], nan[1]), hn::Add(nan[2], nan[3]));
  return QuantOf(hn::ReduceMin(d, lows), hn::ReduceMax(d, highs), hn::ReduceSum(d, nans));
}

void MakeRowsInt8(const RowsToMake& rows) {
  const GemmTagF32 d;
  const TagI32 di;
  using Element = TypeInt8::AElement;
  const hn::Rebind<Element, GemmTagF32> da;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  const size_t k = rows.k;
  for (size_t r = 0; r < rows.rows; ++r) {
    const float* in = rows.in + r * rows.ld_in;  // may be out
    Element* out = static_cast<Element*>(rows.out) + r * rows.ld_out;
    const RowQuant quant = QuantOfRow(in, rows.factor, k);
    rows.quant[r] = quant;
    const float inverse = quant.scale > 0.0f ? 1.0f / quant.scale : 0.0f;
    const VecF32 scale = hn::Set(d, inverse);
    const VecF32 offset = hn::Set(d, quant.zero_point + kMagic);
    const auto quantize = [&](VecF32 x) HWY_ATTR {
      const VecF32 shifted = hn::MulAdd(x, scale, offset);
      return hn::Sub(hn::BitCast(di, shifted), hn::Set(di, kMagicBits));
    };
    // Saturated to 0 .. 255.
    const auto narrow = [&](VecI32 q) HWY_ATTR {
      if constexpr (sizeof(Element) == 1) {
        return hn::DemoteTo(da, q);
      } else {
        return hn::DemoteTo(da, hn::Min(hn::Max(q, hn::Zero(di)), hn::Set(di, 255)));
      }
    };
    const auto load = [&](size_t i) HWY_ATTR {
      const VecF32 x = hn::LoadU(d, in + i);
      return rows.factor == nullptr ? x : hn::Mul(x, hn::LoadU(d, rows.factor + i));
    };
    size_t i = 0;
    for (; i + kLanes <= k; i += kLanes) hn::StoreU(narrow(quantize(load(i))), da, out + i);
    if (i < k) {
      VecF32 x = hn::LoadN(d, in + i, k - i);
      if (rows.factor != nullptr) x = hn::Mul(x, hn::LoadN(d, rows.factor + i, k - i));
      hn::StoreN(narrow(quantize(x)), da, out + i, k - i);
    }
    for (i = k; i % TypeInt8::kGroup != 0; ++i) out[i] = 0;
  }
}

GemmKernel MakeKernel() {
  GemmKernel kernel = KernelOfTiles<TypeInt8>();
  kernel.a_bytes = sizeof(TypeInt8::AElement);
  kernel.b_bytes = sizeof(TypeInt8::BElement);
  kernel.pack = &PackWords<PackInt8>;
  kernel.transpose = &TransposeWords<PackInt8>;
  kernel.make_rows = &MakeRowsInt8;
  return kernel;
}

const GemmKernel* TargetGemmKernelInt8() {
  static const GemmKernel kernel = MakeKernel();
  return &kernel;
}

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::internal {

HWY_EXPORT(TargetGemmKernelInt8);

const GemmKernel& GetGemmKernelInt8() { return *HWY_DYNAMIC_DISPATCH(TargetGemmKernelInt8)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE
