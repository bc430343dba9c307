// SPDX-License-Identifier: Apache-2.0
//
// Looking up each lane in a table of 16 floats, for piecewise polynomials: by permutes of registers
// where vectors have 8 or 16 lanes, by TBL on AArch64, by gathers elsewhere.

#include <cstdint>

#if defined(ENCORE_ENGINE_KERNELS_LOOKUP16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_LOOKUP16_INL_H_
#undef ENCORE_ENGINE_KERNELS_LOOKUP16_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_LOOKUP16_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors have up to 16 lanes here: a D of CappedTag<float, 16>.

// What Lookup16 needs to know of the low four bits of `bits`; the others may be anything.
template <class D, class VI>
HWY_INLINE auto Index16(D d, VI bits) {
  const hn::RebindToSigned<D> di;
  if constexpr (hn::MaxLanes(D()) >= 8) {
    // The permutes look at those bits alone, but debug builds of Highway check the rest.
    if constexpr (HWY_IS_DEBUG_BUILD) bits = hn::And(bits, hn::Set(di, 15));
    return hn::IndicesFromVec(d, bits);
  } else {
    const VI index = hn::And(bits, hn::Set(di, 15));
#if HWY_TARGET_IS_NEON && HWY_ARCH_ARM_A64
    // The four bytes of a float begin at byte 4 * index.
    return hn::Add(hn::Mul(index, hn::Set(di, 0x04040404)), hn::Set(di, 0x03020100));
#else
    return index;
#endif
  }
}

// table[i] in each lane, `index` being Index16 of i. The table is aligned to 64 bytes.
template <class D, class Index>
HWY_INLINE hn::Vec<D> Lookup16(D d, const float* HWY_RESTRICT table, Index index) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::TableLookupLanes(hn::Load(d, table), index);
  } else if constexpr (hn::MaxLanes(D()) == 8) {
    return hn::TwoTablesLookupLanes(d, hn::Load(d, table), hn::Load(d, table + 8), index);
  } else {
#if HWY_TARGET_IS_NEON && HWY_ARCH_ARM_A64
    const hn::Repartition<uint8_t, D> du8;
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(table);
    const uint8x16x4_t all = {
        {vld1q_u8(bytes), vld1q_u8(bytes + 16), vld1q_u8(bytes + 32), vld1q_u8(bytes + 48)}};
    return hn::BitCast(d, hn::Vec<decltype(du8)>(vqtbl4q_u8(all, hn::BitCast(du8, index).raw)));
#else
    return hn::GatherIndex(d, table, index);
#endif
  }
}

// The same for tables of 8, of which there are two copies, for vectors of 16.
template <class D, class VI>
HWY_INLINE auto Index8(D d, VI bits) {
  const hn::RebindToSigned<D> di;
  if constexpr (HWY_IS_DEBUG_BUILD || hn::MaxLanes(D()) < 8) bits = hn::And(bits, hn::Set(di, 7));
  return hn::IndicesFromVec(d, bits);
}
template <class D, class T, class Index>
HWY_INLINE hn::Vec<D> Lookup8(D d, const T* HWY_RESTRICT table, Index index) {
  const hn::Rebind<T, D> dt;  // floats or the bits of floats
  const auto low = hn::BitCast(d, hn::Load(dt, table));
  if constexpr (hn::MaxLanes(D()) >= 8) {
    return hn::TableLookupLanes(low, index);
  } else {
    return hn::TwoTablesLookupLanes(d, low, hn::BitCast(d, hn::Load(dt, table + 4)), index);
  }
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ENCORE_ENGINE_KERNELS_LOOKUP16_INL_H_
