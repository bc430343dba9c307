// SPDX-License-Identifier: Apache-2.0
//
// Rows of A of the integer kernels: floats become integers 0 .. 255, with a scale and a zero point
// a row. And SDOT, the ARM instruction that multiplies bytes of both signs: rows of A hold 128 less
// for it. Included once for each SIMD target.

#if defined(ENCORE_ENGINE_KERNELS_BYTE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_BYTE_ROWS_INL_H_
#undef ENCORE_ENGINE_KERNELS_BYTE_ROWS_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_BYTE_ROWS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/round_magic.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether there is SDOT. encore's NEON is that of processors which have it (simd_targets.h); where
// NEON is the compiler's baseline, the compiler knows.
#undef ENCORE_TARGET_HAS_SDOT
#if HWY_TARGET == HWY_NEON_BF16 || (HWY_TARGET == HWY_NEON && (HWY_TARGET != HWY_STATIC_TARGET || \
                                                               defined(__ARM_FEATURE_DOTPROD)))
#define ENCORE_TARGET_HAS_SDOT 1
#else
#define ENCORE_TARGET_HAS_SDOT 0
#endif

// GemmKernel::a_offset of integer kernels.
inline constexpr int kByteOffset = ENCORE_TARGET_HAS_SDOT ? 128 : 0;

#if ENCORE_TARGET_HAS_SDOT
// Makes the assembler take SDOT. GNU's knows it only from armv8.2-a on, for the rest of a function;
// the other extensions are for what else may be there.
#if HWY_TARGET == HWY_NEON_BF16 || defined(__ARM_FEATURE_DOTPROD)
#define ENCORE_ALLOW_SDOT ""
#elif HWY_COMPILER_CLANG
#define ENCORE_ALLOW_SDOT ".arch_extension dotprod\n\t"
#else
#define ENCORE_ALLOW_SDOT ".arch armv8.2-a+crypto+dotprod+fp16+sve\n\t"
#endif

// sum + the products of four bytes of a row, which are a float's bits, and those of each column.
// Highway has no SDOT, and its NEON does not allow the compiler's.
template <class VecBytes, class VecSum>
HWY_INLINE VecSum AddDotProducts(float a, VecBytes b, VecSum sum) {
  asm(ENCORE_ALLOW_SDOT "sdot %0.4s, %1.16b, %2.4b[0]" : "+w"(sum.raw) : "w"(b.raw), "w"(a));
  return sum;
}
#undef ENCORE_ALLOW_SDOT
#endif

using ByteRowF32 = hn::CappedTag<float, 16>;
using ByteRowU32 = hn::RebindToUnsigned<ByteRowF32>;

inline constexpr float kSmallestRow = 0x1p-100f;

// The numbers of a row spread over kRowSpan steps, and its zero point is rounded a little upwards:
// x / scale + zero_point is above -0.4995 and below 255.4995, with all roundings, so that nothing
// needs to be clamped.
inline constexpr float kRowSpan = 254.95f;
inline constexpr float kRowUp = 0.001f;

// The highest and the negated lowest number of a row, 0 among them; NaN if one is not finite.
struct Extremes {
  float high;
  float minus_low;
};

// The largest of numbers that are not negative but for their sign bits, or NaN: their bits are in
// the same order.
HWY_INLINE float ReduceMaxBits(hn::Vec<ByteRowF32> v) {
  const hn::RebindToSigned<ByteRowF32> di;
  return hwy::BitCastScalar<float>(hn::ReduceMax(di, hn::BitCast(di, hn::Abs(v))));
}

HWY_INLINE Extremes ExtremesOfRow(const float* HWY_RESTRICT in, const float* HWY_RESTRICT factor,
                                  size_t k) {
  const ByteRowF32 d;
  constexpr size_t kLanes = hn::MaxLanes(ByteRowF32());
  constexpr size_t kUnroll = 4;
  hn::Vec<ByteRowF32> low[kUnroll], high[kUnroll], nan[kUnroll];
  for (size_t u = 0; u < kUnroll; ++u) low[u] = high[u] = nan[u] = hn::Zero(d);
  const auto add = [&](size_t u, hn::Vec<ByteRowF32> x) HWY_ATTR {
    low[u] = hn::Min(low[u], x);
    high[u] = hn::Max(high[u], x);
    nan[u] = hn::MulAdd(x, hn::Zero(d), nan[u]);
  };
  const auto load = [&](size_t i) HWY_ATTR {
    const hn::Vec<ByteRowF32> x = hn::LoadU(d, in + i);
    return factor == nullptr ? x : hn::Mul(x, hn::LoadU(d, factor + i));
  };
  size_t i = 0;
  for (; i + kUnroll * kLanes <= k; i += kUnroll * kLanes) {
    ENCORE_UNROLL
    for (size_t u = 0; u < kUnroll; ++u) add(u, load(i + u * kLanes));
  }
  for (; i + kLanes <= k; i += kLanes) add(0, load(i));
  if (i < k) {
    const hn::Vec<ByteRowF32> x = hn::LoadN(d, in + i, k - i);
    add(1, factor == nullptr ? x : hn::Mul(x, hn::LoadN(d, factor + i, k - i)));
  }
  const hn::Vec<ByteRowF32> nans = hn::Add(hn::Add(nan[0], nan[1]), hn::Add(nan[2], nan[3]));
  const hn::Vec<ByteRowF32> lows = hn::Min(hn::Min(low[0], low[1]), hn::Min(low[2], low[3]));
  const hn::Vec<ByteRowF32> highs = hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3]));
  return {ReduceMaxBits(hn::Add(highs, nans)), ReduceMaxBits(lows)};
}

// The scales and zero points of up to 16 rows, computed from their extremes with a row in each
// lane.
inline constexpr size_t kMaxQuantRows = 16;
struct RowQuants {
  alignas(64) float high[kMaxQuantRows];
  alignas(64) float minus_low[kMaxQuantRows];
  alignas(64) float scale[kMaxQuantRows];
  alignas(64) float inverse[kMaxQuantRows];
  alignas(64) float zero_point[kMaxQuantRows];

  void Find() {
    const ByteRowF32 d;
    const hn::Vec<ByteRowF32> one = hn::Set(d, 1.0f);
    const hn::Vec<ByteRowF32> span = hn::Set(d, kRowSpan);
    const hn::Vec<ByteRowF32> magic = hn::Set(d, kRoundMagic);
    for (size_t r = 0; r < kMaxQuantRows; r += hn::Lanes(d)) {
      const hn::Vec<ByteRowF32> up = hn::Load(d, high + r);
      const hn::Vec<ByteRowF32> down = hn::Load(d, minus_low + r);
      // Parts that cannot overflow.
      const hn::Vec<ByteRowF32> step = hn::Add(hn::Div(up, span), hn::Div(down, span));
      const auto tiny =
          hn::And(hn::Lt(up, hn::Set(d, kSmallestRow)), hn::Lt(down, hn::Set(d, kSmallestRow)));
      const hn::Vec<ByteRowF32> steps = hn::IfThenElse(tiny, one, step);
      const hn::Vec<ByteRowF32> zero = hn::Add(hn::Div(down, steps), hn::Set(d, kRowUp));
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
  hn::Vec<ByteRowF32> scale;
  hn::Vec<ByteRowF32> offset;

  HWY_INLINE hn::Vec<ByteRowU32> operator()(size_t i) const {
    const ByteRowF32 d;
    hn::Vec<ByteRowF32> x = hn::LoadU(d, in + i);
    if (factor != nullptr) x = hn::Mul(x, hn::LoadU(d, factor + i));
    return hn::BitCast(ByteRowU32(), hn::MulAdd(x, scale, offset));
  }
  HWY_INLINE hn::Vec<ByteRowU32> Some(size_t i, size_t count) const {
    const ByteRowF32 d;
    hn::Vec<ByteRowF32> x = hn::LoadN(d, in + i, count);
    if (factor != nullptr) x = hn::Mul(x, hn::LoadN(d, factor + i, count));
    return hn::BitCast(ByteRowU32(), hn::MulAdd(x, scale, offset));
  }
};

// Whole vectors of elements of A from vectors of 32 bits.
HWY_INLINE hn::Vec<hn::Repartition<uint16_t, ByteRowU32>> NarrowTwo(const QuantizedRow& row,
                                                                    size_t i) {
  constexpr size_t kLanes = hn::MaxLanes(ByteRowU32());
  const hn::Repartition<uint16_t, ByteRowU32> du16;
  return hn::OrderedTruncate2To(du16, row(i), row(i + kLanes));
}

// As many elements as fill whole vectors; how many those are.
template <typename Element>
HWY_INLINE size_t StoreWhole(const QuantizedRow& row, size_t k, Element* out) {
  constexpr size_t kLanes = hn::MaxLanes(ByteRowU32());
  const hn::Repartition<uint16_t, ByteRowU32> du16;
  size_t i = 0;
  if constexpr (sizeof(Element) == 1) {
    const hn::Repartition<Element, ByteRowU32> du8;
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
inline size_t RowsAtATime(size_t k) {
  constexpr size_t kFloats = 6144;  // half of 48 KiB
  const size_t rows = kFloats / (k + 1);
  return rows < 1 ? 1 : HWY_MIN(rows, kMaxQuantRows);
}

template <typename Element, size_t kGroup>
HWY_INLINE void QuantizeRow(const QuantizedRow& row, size_t k, Element* out) {
  const ByteRowU32 du;
  const hn::Rebind<Element, ByteRowU32> da;
  constexpr size_t kLanes = hn::MaxLanes(ByteRowU32());
  const auto byte = hn::Set(du, 255u);
  size_t i = StoreWhole(row, k, out);
  for (; i + kLanes <= k; i += kLanes) {
    hn::StoreU(hn::TruncateTo(da, hn::And(row(i), byte)), da, out + i);
  }
  if (i < k) hn::StoreN(hn::TruncateTo(da, hn::And(row.Some(i, k - i), byte)), da, out + i, k - i);
  for (i = k; i % kGroup != 0; ++i) out[i] = static_cast<Element>(kByteOffset);
}

// GemmKernel::pack_lhs of integer kernels: Element is uint8_t, or uint16_t of the same numbers.
// With kByteOffset the bytes are those of int8_t; being even, it changes no rounding.
template <typename Element, size_t kGroup>
void PackLhsBytes(const LhsToPack& rows) {
  const ByteRowF32 d;
  const size_t k = rows.k;
  const size_t at_a_time = RowsAtATime(k);
  RowQuants quants = {};
  for (size_t begin = 0; begin < rows.rows; begin += at_a_time) {
    const size_t count = HWY_MIN(at_a_time, rows.rows - begin);
    const ConstRows in = rows.in.From(begin);
    const PackedLhs out = rows.out.From(begin);
    for (size_t r = 0; r < count; ++r) {
      const Extremes extremes = ExtremesOfRow(in.row(r), rows.factor, k);
      quants.high[r] = extremes.high;
      quants.minus_low[r] = extremes.minus_low;
    }
    quants.Find();
    for (size_t r = 0; r < count; ++r) {
      out.quant[r] = {quants.scale[r], quants.zero_point[r]};
      const QuantizedRow row{in.row(r), rows.factor, hn::Set(d, quants.inverse[r]),
                             hn::Set(d, quants.zero_point[r] + (kRoundMagic - kByteOffset))};
      QuantizeRow<Element, kGroup>(row, k, reinterpret_cast<Element*>(out.From(r).data));
    }
  }
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
