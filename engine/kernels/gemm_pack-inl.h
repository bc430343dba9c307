// SPDX-License-Identifier: Apache-2.0
//
// Packing of the right-hand matrix B [K, N] into panels of NR = NV * lanes columns:
//
//            n = 0 .. NR-1        NR .. 2NR-1
//   k = 0   [0   1   ...  NR-1]  [K*NR ...        ]
//   k = 1   [NR  NR+1 ... 2NR-1] [                ]
//   ...     [                  ] [                ]
//   k = K-1 [                  ] [                ]
//
// Numbers are offsets in words: a panel is contiguous and the micro-kernel reads it from end to
// end. The last panel has as many whole vectors as its columns need. Columns past N are zeros. A
// word is a float, or a group of kr > 1 elements along k. Included once for each SIMD target.
//
// Of the element type it knows:
//   kGroup                                  elements of a group
//   Word ToWord(const float* e)             the word of the elements e[0 .. kGroup - 1]: uint32_t
//                                           or uint16_t
//   void ToWords(in, words, out)            the words of in[0 .. words * kGroup - 1], contiguous;
//                                           not of groups of one
//   void PackRows(b, stride, k, cols, nr, out)   a panel of k rows of contiguous elements, where
//                                           there is a faster way than word by word

#if defined(ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_
#undef ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A vector whose q-th block of four floats is those at in + q * step.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const float* HWY_RESTRICT in, size_t step) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, in);
  } else {
    const hn::Half<D> half;
    constexpr size_t kBlocks = hn::MaxLanes(half) / 4;
    return hn::Combine(d, LoadBlocks(half, in + kBlocks * step, step), LoadBlocks(half, in, step));
  }
}

// Four columns of as many rows as D has lanes become four rows; the first `count` of them are
// stored. Row i of the source is in + min(i, last) * ld_in.
template <class D>
HWY_INLINE void TransposeFour(D d, const float* HWY_RESTRICT in, size_t ld_in, size_t last,
                              size_t count, float* HWY_RESTRICT out, size_t ld_out) {
  const auto r0 = LoadBlocks(d, in, 4 * ld_in);
  const auto r1 = LoadBlocks(d, in + HWY_MIN(last, size_t{1}) * ld_in, 4 * ld_in);
  const auto r2 = LoadBlocks(d, in + HWY_MIN(last, size_t{2}) * ld_in, 4 * ld_in);
  const auto r3 = LoadBlocks(d, in + HWY_MIN(last, size_t{3}) * ld_in, 4 * ld_in);
  const auto t0 = hn::InterleaveLower(d, r0, r2);  // a0 c0 a1 c1 of each block
  const auto t1 = hn::InterleaveLower(d, r1, r3);  // b0 d0 b1 d1
  const auto t2 = hn::InterleaveUpper(d, r0, r2);
  const auto t3 = hn::InterleaveUpper(d, r1, r3);
  const auto store = [=](auto v, size_t row) HWY_ATTR {
    if (count == hn::Lanes(d)) {
      hn::StoreU(v, d, out + row * ld_out);
    } else {
      hn::StoreN(v, d, out + row * ld_out, count);
    }
  };
  store(hn::InterleaveLower(d, t0, t1), 0);
  store(hn::InterleaveUpper(d, t0, t1), 1);
  store(hn::InterleaveLower(d, t2, t3), 2);
  store(hn::InterleaveUpper(d, t2, t3), 3);
}

// out[c * ld_out + r] = in[r * ld_in + c], no other element touched.
inline void Transpose(const float* in, size_t ld_in, size_t rows, size_t cols, void* panel,
                      size_t ld_out) {
  float* out = static_cast<float*>(panel);
  if (rows == 0) return;  // and `in` may be null
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 4> d4;
  constexpr size_t kLanes = hn::MaxLanes(d);
  size_t c = 0;
  if (hn::MaxLanes(d4) == 4) {  // else there are no blocks of four
    for (; c + 4 <= cols; c += 4) {
      const float* HWY_RESTRICT from = in + c;
      float* HWY_RESTRICT to = out + c * ld_out;
      size_t r = 0;
      for (; r + kLanes <= rows; r += kLanes) {
        TransposeFour(d, from + r * ld_in, ld_in, 3, kLanes, to + r, ld_out);
      }
      for (; r < rows; r += 4) {
        const size_t left = HWY_MIN(rows - r, size_t{4});
        TransposeFour(d4, from + r * ld_in, ld_in, left - 1, left, to + r, ld_out);
      }
    }
  }
  for (; c < cols; ++c) {
    for (size_t r = 0; r < rows; ++r) out[c * ld_out + r] = in[r * ld_in + c];
  }
}

// Transpose of numbers of 16 bits, by twos: of at most 16 rows, ld_in even, and where cols is odd
// there is one more.
inline void TransposeHalves(const uint16_t* in, size_t ld_in, size_t rows, size_t cols,
                            uint16_t* out, size_t ld_out) {
  constexpr size_t kRows = 16;
  const hn::CappedTag<uint32_t, kRows> du;
  const hn::Rebind<uint16_t, decltype(du)> dh;
  constexpr size_t kLanes = hn::MaxLanes(du);
  HWY_ALIGN uint32_t pairs[4 * kRows];
  for (size_t c = 0; c < cols; c += 8) {
    const size_t count = HWY_MIN((cols - c + 1) / 2, size_t{4});
    Transpose(reinterpret_cast<const float*>(in + c), ld_in / 2, rows, count, pairs, kRows);
    for (size_t i = 0; i < count; ++i) {
      uint16_t* const to = out + (c + 2 * i) * ld_out;
      const bool has_odd = c + 2 * i + 1 < cols;
      for (size_t r = 0; r < rows; r += kLanes) {
        const size_t left = HWY_MIN(rows - r, kLanes);
        const auto pair = hn::LoadN(du, pairs + i * kRows + r, left);
        hn::StoreN(hn::TruncateTo(dh, pair), dh, to + r, left);
        if (!has_odd) continue;
        hn::StoreN(hn::TruncateTo(dh, hn::ShiftRight<16>(pair)), dh, to + ld_out + r, left);
      }
    }
  }
}

template <class Type>
using WordOf = decltype(Type::ToWord(nullptr));

// A word of up to kGroup elements, stride apart; those missing are zeros.
template <class Type>
WordOf<Type> GatherWord(const float* in, ptrdiff_t stride, size_t count) {
  float elements[Type::kGroup] = {};
  for (size_t i = 0; i < count; ++i) elements[i] = in[static_cast<ptrdiff_t>(i) * stride];
  return Type::ToWord(elements);
}

// out[w * ld_out + r] = word w of row r, for contiguous rows of k elements.
template <class Type>
void TransposeWords(const float* in, size_t ld_in, size_t rows, size_t k, void* out,
                    size_t ld_out) {
  if constexpr (Type::kGroup == 1) {
    Transpose(in, ld_in, rows, k, out, ld_out);
  } else {
    // A piece of kRows x kWords words stays in L1. Transpose takes the words as floats and only
    // copies their bits.
    constexpr size_t kRows = 16;
    constexpr size_t kWords = 64;
    HWY_ALIGN WordOf<Type> words[kRows * kWords];
    auto* const to = static_cast<WordOf<Type>*>(out);
    for (size_t k0 = 0; k0 < k; k0 += kWords * Type::kGroup) {
      const size_t count = HWY_MIN(k - k0, kWords * Type::kGroup);
      const size_t whole = count / Type::kGroup;
      const size_t all = (count + Type::kGroup - 1) / Type::kGroup;
      for (size_t r0 = 0; r0 < rows; r0 += kRows) {
        const size_t piece = HWY_MIN(rows - r0, kRows);
        for (size_t r = 0; r < piece; ++r) {
          const float* from = in + (r0 + r) * ld_in + k0;
          Type::ToWords(from, whole, words + r * kWords);
          if (all != whole) {
            const size_t left = count - whole * Type::kGroup;
            words[r * kWords + whole] = GatherWord<Type>(from + whole * Type::kGroup, 1, left);
          }
          if (all % 2 != 0) words[r * kWords + all] = 0;
        }
        auto* const to_piece = to + k0 / Type::kGroup * ld_out + r0;
        if constexpr (sizeof(*to_piece) == sizeof(uint16_t)) {
          TransposeHalves(words, kWords, piece, all, to_piece, ld_out);
        } else {
          Transpose(reinterpret_cast<const float*>(words), kWords, piece, all, to_piece, ld_out);
        }
      }
    }
  }
}

template <class Type>
void PackPanel(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t cols,
               size_t nr, void* panel) {
  const size_t groups = (k + Type::kGroup - 1) / Type::kGroup;
  auto* const out = static_cast<WordOf<Type>*>(panel);
  if (stride_k == 1 && stride_n >= 0) {
    TransposeWords<Type>(b, static_cast<size_t>(stride_n), cols, k, panel, nr);
  } else {
    if constexpr (requires { &Type::PackRows; }) {
      if (stride_n == 1) return Type::PackRows(b, stride_k, k, cols, nr, out);
    }
    for (size_t g = 0; g < groups; ++g) {
      const size_t k0 = g * Type::kGroup;
      const float* from = b + static_cast<ptrdiff_t>(k0) * stride_k;
      for (size_t n = 0; n < cols; ++n) {
        out[g * nr + n] = GatherWord<Type>(from + static_cast<ptrdiff_t>(n) * stride_n, stride_k,
                                           HWY_MIN(k - k0, Type::kGroup));
      }
    }
  }
  for (size_t g = 0; cols != nr && g < groups; ++g) {
    for (size_t n = cols; n < nr; ++n) out[g * nr + n] = 0;
  }
}

struct PackF32 {
  static constexpr size_t kGroup = 1;
  static uint32_t ToWord(const float* e) { return std::bit_cast<uint32_t>(*e); }
  // Vectors in place of memcpy: for the few columns of a small head, its calls would take a
  // noticeable part of the product's time.
  static void PackRows(const float* b, ptrdiff_t stride, size_t k, size_t cols, size_t nr,
                       uint32_t* panel) {
    const hn::CappedTag<float, 16> d;
    const size_t lanes = hn::Lanes(d);
    float* const out = reinterpret_cast<float*>(panel);
    for (size_t r = 0; r < k; ++r) {
      const float* HWY_RESTRICT from = b + static_cast<ptrdiff_t>(r) * stride;
      float* HWY_RESTRICT to = out + r * nr;
      size_t n = 0;
      for (; n + lanes <= cols; n += lanes) hn::StoreU(hn::LoadU(d, from + n), d, to + n);
      if (n < cols) {
        hn::StoreU(hn::LoadN(d, from + n, cols - n), d, to + n);
        n += lanes;
      }
      for (; n < nr; n += lanes) hn::StoreU(hn::Zero(d), d, to + n);
    }
  }
};

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
