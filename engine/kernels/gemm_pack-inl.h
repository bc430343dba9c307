// SPDX-License-Identifier: Apache-2.0
//
// Packing of the f32 right-hand matrix B [K, N] into panels of NR = NV * lanes columns:
//
//            n = 0 .. NR-1        NR .. 2NR-1
//   k = 0   [0   1   ...  NR-1]  [K*NR ...        ]
//   k = 1   [NR  NR+1 ... 2NR-1] [                ]
//   ...     [                  ] [                ]
//   k = K-1 [                  ] [                ]
//
// Numbers are offsets in floats: a panel is contiguous and the micro-kernel reads it from end to
// end. The last panel has as many whole vectors as its columns need. Columns past N are zeros.
// With groups of kr > 1 a float's place holds the group's elements. Included once for each SIMD
// target.

#if defined(ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_
#undef ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_
#endif

#include <cstddef>

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

// Contiguous rows of `cols` floats become rows of nr, whole vectors, filled up with zeros. No calls
// of memcpy: with the few columns of a small head they would show beside the product.
inline void CopyRows(const float* in, ptrdiff_t stride, size_t rows, size_t cols, size_t nr,
                     float* out) {
  const hn::CappedTag<float, 16> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < rows; ++r) {
    const float* HWY_RESTRICT from = in + static_cast<ptrdiff_t>(r) * stride;
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

inline void PackPanel(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t cols,
                      size_t nr, void* out) {
  float* panel = static_cast<float*>(out);
  if (stride_k == 1 && stride_n >= 0) {
    Transpose(b, static_cast<size_t>(stride_n), cols, k, panel, nr);
  } else if (stride_n == 1) {
    CopyRows(b, stride_k, k, cols, nr, panel);
    return;
  } else {
    for (size_t i = 0; i < k; ++i) {
      const float* row = b + static_cast<ptrdiff_t>(i) * stride_k;
      for (size_t n = 0; n < cols; ++n) {
        panel[i * nr + n] = row[static_cast<ptrdiff_t>(n) * stride_n];
      }
    }
  }
  if (cols == nr) return;
  for (size_t i = 0; i < k; ++i) {
    for (size_t n = cols; n < nr; ++n) panel[i * nr + n] = 0.0f;
  }
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
