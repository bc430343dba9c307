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
// Numbers are offsets in floats: a panel is contiguous and the micro-kernel reads it from end to
// end. The last panel has as many whole vectors as its columns need. Columns past N are zeros.
// Included once for each SIMD target.

#if defined(ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_
#undef ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_GEMM_PACK_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of 4 x 4 blocks exchanged with columns: out[k * nr + n] = in[n * stride_n + k].
HWY_INLINE void Transpose4x4(const float* HWY_RESTRICT in, ptrdiff_t stride_n, size_t nr,
                             float* HWY_RESTRICT out) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, in);
  const auto r1 = hn::LoadU(d, in + stride_n);
  const auto r2 = hn::LoadU(d, in + 2 * stride_n);
  const auto r3 = hn::LoadU(d, in + 3 * stride_n);
  const auto t0 = hn::InterleaveLower(d, r0, r2);  // a0 c0 a1 c1
  const auto t1 = hn::InterleaveLower(d, r1, r3);  // b0 d0 b1 d1
  const auto t2 = hn::InterleaveUpper(d, r0, r2);
  const auto t3 = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, t0, t1), d, out);
  hn::StoreU(hn::InterleaveUpper(d, t0, t1), d, out + nr);
  hn::StoreU(hn::InterleaveLower(d, t2, t3), d, out + 2 * nr);
  hn::StoreU(hn::InterleaveUpper(d, t2, t3), d, out + 3 * nr);
}

inline void PackPanel(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t cols,
                      size_t nr, float* panel) {
  size_t k0 = 0;  // rows [0, k0) of columns [0, n0) are done by a fast path
  size_t n0 = 0;
  if (stride_n == 1) {
    k0 = k;
    n0 = cols;
    for (size_t i = 0; i < k; ++i) {
      std::memcpy(panel + i * nr, b + static_cast<ptrdiff_t>(i) * stride_k, cols * sizeof(float));
    }
  } else if (stride_k == 1) {
    k0 = k / 4 * 4;
    n0 = cols / 4 * 4;
    for (size_t i = 0; i < k0; i += 4) {
      for (size_t n = 0; n < n0; n += 4) {
        Transpose4x4(b + static_cast<ptrdiff_t>(n) * stride_n + i, stride_n, nr,
                     panel + i * nr + n);
      }
    }
  }
  for (size_t i = 0; i < k; ++i) {
    const float* row = b + static_cast<ptrdiff_t>(i) * stride_k;
    for (size_t n = i < k0 ? n0 : 0; n < cols; ++n) {
      panel[i * nr + n] = row[static_cast<ptrdiff_t>(n) * stride_n];
    }
    for (size_t n = cols; n < nr; ++n) panel[i * nr + n] = 0.0f;
  }
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
