// SPDX-License-Identifier: Apache-2.0
//
// The int8 micro-kernels of every SIMD target: unsigned rows, signed columns, exact 32-bit sums.
// Four products at a time where there is an instruction that does not saturate (VPDPBUSD), else two
// of numbers widened to 16 bits (VPMADDWD): VPMADDUBSW would saturate at 255 * 127 twice.

#include <cstddef>
#include <cstdint>

#include "engine/base/strict_math.h"
// AVX3_ZEN4's products of integers are AVX3_DL's.
#define ENCORE_SAME_ON_AVX3 HWY_AVX3_ZEN4
#include "engine/kernels/fewer_avx3.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/round_magic.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gemm_int8.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/dispatch.h"
#include "engine/kernels/gemm_amx-inl.h"
#include "engine/kernels/gemm_tiles-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

using TagI32 = hn::RebindToSigned<GemmTagF32>;
using TagU32 = hn::RebindToUnsigned<GemmTagF32>;
using VecF32 = hn::Vec<GemmTagF32>;
using VecI32 = hn::Vec<TagI32>;

#define ENCORE_MULTIPLIES_BYTES (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL)
#if ENCORE_MULTIPLIES_BYTES
using AElement = uint8_t;
using BElement = int8_t;
using TagA = hn::Repartition<uint8_t, GemmTagF32>;
#else
using AElement = uint16_t;  // 0 .. 255, as the instruction takes both
using BElement = int16_t;
using TagA = hn::Repartition<int16_t, GemmTagF32>;
#endif
using TagB = hn::Repartition<BElement, GemmTagF32>;

struct TypeInt8 {
  using AWord = uint32_t;
  using Word = uint32_t;
  static constexpr size_t kGroup = sizeof(Word) / sizeof(BElement);
  static constexpr bool kInteger = true;
  static HWY_INLINE hn::Vec<TagA> Spread(const AWord& word) {
    return hn::BitCast(TagA(), hn::Set(TagU32(), word));
  }
  static HWY_INLINE hn::Vec<TagB> Load(const Word* words) {
    return hn::BitCast(TagB(), hn::LoadU(TagU32(), words));
  }
  static HWY_INLINE VecF32 MulAdd(hn::Vec<TagA> a, hn::Vec<TagB> b, VecF32 sum) {
    const TagI32 di;
#if ENCORE_MULTIPLIES_BYTES
    return hn::BitCast(GemmTagF32(), hn::SumOfMulQuadAccumulate(di, a, b, hn::BitCast(di, sum)));
#else
    return hn::BitCast(GemmTagF32(),
                       hn::Add(hn::BitCast(di, sum), hn::WidenMulPairwiseAdd(di, a, b)));
#endif
  }

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

constexpr float kSmallest = 0x1p-100f;

// The numbers of a row spread over kSpan steps, and its zero point is rounded a little upwards:
// x / scale + zero_point is above -0.4995 and below 255.4995, with all roundings, so that nothing
// needs to be clamped.
constexpr float kSpan = 254.95f;
constexpr float kUp = 0.001f;

// The highest and the negated lowest number of a row, 0 among them; NaN if one is not finite.
struct Extremes {
  float high;
  float minus_low;
};

// The largest of numbers that are not negative but for their sign bits, or NaN: their bits are in
// the same order.
HWY_INLINE float ReduceMaxBits(VecF32 v) {
  const TagI32 di;
  return hwy::BitCastScalar<float>(hn::ReduceMax(di, hn::BitCast(di, hn::Abs(v))));
}

HWY_INLINE Extremes ExtremesOfRow(const float* HWY_RESTRICT in, const float* HWY_RESTRICT factor,
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
  const VecF32 nans = hn::Add(hn::Add(nan[0], nan[1]), hn::Add(nan[2], nan[3]));
  const VecF32 lows = hn::Min(hn::Min(low[0], low[1]), hn::Min(low[2], low[3]));
  const VecF32 highs = hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3]));
  return {ReduceMaxBits(hn::Add(highs, nans)), ReduceMaxBits(lows)};
}

// What the extremes of some rows make of them, a vector at a time.
constexpr size_t kMaxRows = 16;
struct RowQuants {
  alignas(64) float high[kMaxRows];
  alignas(64) float minus_low[kMaxRows];
  alignas(64) float scale[kMaxRows];
  alignas(64) float inverse[kMaxRows];
  alignas(64) float zero_point[kMaxRows];

  void Find() {
    const GemmTagF32 d;
    const VecF32 one = hn::Set(d, 1.0f);
    const VecF32 span = hn::Set(d, kSpan);
    const VecF32 magic = hn::Set(d, kRoundMagic);
    for (size_t r = 0; r < kMaxRows; r += hn::Lanes(d)) {
      const VecF32 up = hn::Load(d, high + r);
      const VecF32 down = hn::Load(d, minus_low + r);
      // Parts that cannot overflow.
      const VecF32 step = hn::Add(hn::Div(up, span), hn::Div(down, span));
      const auto tiny =
          hn::And(hn::Lt(up, hn::Set(d, kSmallest)), hn::Lt(down, hn::Set(d, kSmallest)));
      const VecF32 steps = hn::IfThenElse(tiny, one, step);
      const VecF32 zero = hn::Add(hn::Div(down, steps), hn::Set(d, kUp));
      hn::Store(hn::IfThenZeroElse(tiny, step), d, scale + r);
      hn::Store(hn::IfThenZeroElse(tiny, hn::Div(one, steps)), d, inverse + r);
      hn::Store(hn::IfThenZeroElse(tiny, hn::Sub(hn::Add(zero, magic), magic)), d, zero_point + r);
    }
  }
};

// A row of floats on its way to integers, whose lowest bits those of (*this)(i) are.
struct QuantizedRow {
  const float* in;
  const float* factor;  // or null
  VecF32 scale;
  VecF32 offset;

  HWY_INLINE hn::Vec<TagU32> operator()(size_t i) const {
    const GemmTagF32 d;
    VecF32 x = hn::LoadU(d, in + i);
    if (factor != nullptr) x = hn::Mul(x, hn::LoadU(d, factor + i));
    return hn::BitCast(TagU32(), hn::MulAdd(x, scale, offset));
  }
  HWY_INLINE hn::Vec<TagU32> Some(size_t i, size_t count) const {
    const GemmTagF32 d;
    VecF32 x = hn::LoadN(d, in + i, count);
    if (factor != nullptr) x = hn::Mul(x, hn::LoadN(d, factor + i, count));
    return hn::BitCast(TagU32(), hn::MulAdd(x, scale, offset));
  }
};

// Whole vectors of elements of A from vectors of 32 bits.
HWY_INLINE hn::Vec<hn::Repartition<uint16_t, TagU32>> NarrowTwo(const QuantizedRow& row, size_t i) {
  constexpr size_t kLanes = hn::MaxLanes(TagU32());
  const hn::Repartition<uint16_t, TagU32> du16;
  return hn::OrderedTruncate2To(du16, row(i), row(i + kLanes));
}

// As many elements as fill whole vectors; how many those are.
template <typename Element>
HWY_INLINE size_t StoreWhole(const QuantizedRow& row, size_t k, Element* out) {
  constexpr size_t kLanes = hn::MaxLanes(TagU32());
  const hn::Repartition<uint16_t, TagU32> du16;
  size_t i = 0;
  if constexpr (sizeof(Element) == 1) {
    const hn::Repartition<Element, TagU32> du8;
    for (; i + 4 * kLanes <= k; i += 4 * kLanes) {
      const auto low = NarrowTwo(row, i);
      const auto high = NarrowTwo(row, i + 2 * kLanes);
      hn::StoreU(hn::OrderedTruncate2To(du8, low, high), du8, out + i);
    }
  } else {
    const auto byte = hn::Set(du16, uint16_t{255});
    for (; i + 2 * kLanes <= k; i += 2 * kLanes) {
      hn::StoreU(hn::And(NarrowTwo(row, i), byte), du16, out + i);
    }
  }
  return i;
}

// Of so many rows at a time that they stay in L1 from the first look to the second.
size_t RowsAtATime(size_t k) {
  constexpr size_t kFloats = 6144;  // half of 48 KiB
  const size_t rows = kFloats / (k + 1);
  return rows < 1 ? 1 : HWY_MIN(rows, kMaxRows);
}

HWY_INLINE void QuantizeRow(const QuantizedRow& row, size_t k, AElement* out) {
  const TagU32 du;
  const hn::Rebind<AElement, TagU32> da;
  constexpr size_t kLanes = hn::MaxLanes(TagU32());
  const auto byte = hn::Set(du, 255u);
  size_t i = StoreWhole(row, k, out);
  for (; i + kLanes <= k; i += kLanes) {
    hn::StoreU(hn::TruncateTo(da, hn::And(row(i), byte)), da, out + i);
  }
  if (i < k) hn::StoreN(hn::TruncateTo(da, hn::And(row.Some(i, k - i), byte)), da, out + i, k - i);
  for (i = k; i % TypeInt8::kGroup != 0; ++i) out[i] = 0;
}

void MakeRowsInt8(const RowsToMake& rows) {
  const GemmTagF32 d;
  const size_t k = rows.k;
  const size_t at_a_time = RowsAtATime(k);
  RowQuants quants = {};
  for (size_t begin = 0; begin < rows.rows; begin += at_a_time) {
    const size_t count = HWY_MIN(at_a_time, rows.rows - begin);
    const ConstRows in = rows.in.From(begin);
    const MadeRows out = rows.out.From(begin);
    for (size_t r = 0; r < count; ++r) {
      const Extremes extremes = ExtremesOfRow(in.row(r), rows.factor, k);
      quants.high[r] = extremes.high;
      quants.minus_low[r] = extremes.minus_low;
    }
    quants.Find();
    for (size_t r = 0; r < count; ++r) {
      out.quant[r] = {quants.scale[r], quants.zero_point[r]};
      const QuantizedRow row{in.row(r), rows.factor, hn::Set(d, quants.inverse[r]),
                             hn::Set(d, quants.zero_point[r] + kRoundMagic)};
      QuantizeRow(row, k, reinterpret_cast<AElement*>(out.From(r).data));
    }
  }
}

constexpr GemmKernel kKernel = KernelOf<TypeInt8, PackInt8>(&MakeRowsInt8);

const GemmKernel* TargetGemmKernelInt8() { return &kKernel; }

#if ENCORE_TARGET_HAS_AMX
constexpr GemmKernel kAmxKernel = amx::WithRows<TypeInt8>(kKernel);
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
