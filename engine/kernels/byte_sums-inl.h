// SPDX-License-Identifier: Apache-2.0
//
// Weighted sums of rows of bytes, of every SIMD target: bytes become 16 bits, and an instruction
// multiplies those of two rows by two weights and adds the products (PMADDWD).

#if defined(ENCORE_ENGINE_KERNELS_BYTE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_BYTE_SUMS_INL_H_
#undef ENCORE_ENGINE_KERNELS_BYTE_SUMS_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_BYTE_SUMS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "engine/kernels/byte_sums.h"
#include "engine/kernels/dispatch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using TagBytes = hn::ScalableTag<uint8_t>;
using TagWords = hn::Repartition<int16_t, TagBytes>;
using TagSums = hn::Repartition<int32_t, TagBytes>;

// The bytes of one vector's width, which load(row) gives. Interleaving and narrowing go by blocks
// of 128 bits, the one undoing the order of the other.
template <class Load>
HWY_INLINE hn::Vec<TagBytes> SumBytes(const ByteSumArgs& args, const Load& load) {
  constexpr TagBytes d8;
  constexpr TagWords d16;
  constexpr TagSums d32;
  const auto zero = hn::Zero(d8);
  hn::Vec<TagSums> low[4], high[4];
  for (size_t q = 0; q < 4; ++q) {
    low[q] = hn::Set(d32, 1 << (kByteSumBits - 1));
    high[q] = hn::Zero(d32);
  }
  const uint8_t* row = args.in;
  for (size_t r = 0; r < args.rows; r += 2, row += 2 * args.stride) {
    const WeightPair& pair = args.weights[r / 2];
    const auto low_weights = hn::BitCast(d16, hn::Set(d32, pair.low));
    const auto high_weights = hn::BitCast(d16, hn::Set(d32, pair.high));
    const auto first = load(row);
    const auto second = r + 1 < args.rows ? load(row + args.stride) : zero;
    const auto lower = hn::InterleaveLower(d8, first, second);
    const auto upper = hn::InterleaveUpper(d8, first, second);
    const auto add = [&](size_t q, hn::Vec<TagBytes> bytes) HWY_ATTR {
      const auto words = hn::BitCast(d16, bytes);
      low[q] = hn::Add(low[q], hn::WidenMulPairwiseAdd(d32, words, low_weights));
      high[q] = hn::Add(high[q], hn::WidenMulPairwiseAdd(d32, words, high_weights));
    };
    add(0, hn::InterleaveLower(d8, lower, zero));
    add(1, hn::InterleaveUpper(d8, lower, zero));
    add(2, hn::InterleaveLower(d8, upper, zero));
    add(3, hn::InterleaveUpper(d8, upper, zero));
  }
  for (size_t q = 0; q < 4; ++q) {
    low[q] = hn::Add(low[q], hn::ShiftLeft<WeightPair::kLowBits>(high[q]));
    low[q] = hn::ShiftRight<kByteSumBits>(low[q]);
  }
  return hn::ReorderDemote2To(d8, hn::ReorderDemote2To(d16, low[0], low[1]),
                              hn::ReorderDemote2To(d16, low[2], low[3]));
}

void SumByteRowsOf(const ByteSumArgs& args) {
  constexpr TagBytes d8;
  ByteSumArgs rest = args;
  const size_t lanes = hn::Lanes(d8);
  for (; rest.n >= lanes; rest.n -= lanes, rest.in += lanes, rest.out += lanes) {
    const auto load = [](const uint8_t* row) HWY_ATTR { return hn::LoadU(TagBytes(), row); };
    hn::StoreU(SumBytes(rest, load), d8, rest.out);
  }
  if (rest.n == 0) return;
  const auto some = [&](const uint8_t* row) HWY_ATTR { return hn::LoadN(TagBytes(), row, rest.n); };
  hn::StoreN(SumBytes(rest, some), d8, rest.out, rest.n);
}

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(SumByteRowsOf);

void SumByteRows(const ByteSumArgs& args) { ENCORE_DISPATCH(SumByteRowsOf)(args); }

}  // namespace encore::internal
#endif  // HWY_ONCE

#endif  // per-target include guard
