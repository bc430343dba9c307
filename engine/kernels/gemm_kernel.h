// SPDX-License-Identifier: Apache-2.0
//
// The micro-kernels of the matrix product of one SIMD target, as plain function pointers. Not here:
// loops over tiles, blocking, threads and memory (engine/ops/gemm.h, engine/ops/packed_matrix.h).

#ifndef ENCORE_ENGINE_KERNELS_GEMM_KERNEL_H_
#define ENCORE_ENGINE_KERNELS_GEMM_KERNEL_H_

#include <cstddef>

namespace encore::internal {

// The widest tile, in vectors.
inline constexpr size_t kMaxTileVectors = 4;

// One microtile: MR rows by NV vectors of columns,
//   c = relu(scale * (init_scale * init + a b) + residual)
// where scale is a row's own, and each factor, the residual and relu are optional. Each element of
// a b is one chain of fused multiply-adds over k = 0 .. kc-1 that starts at init; the rest comes in
// the order written. b may be a slice of a packed panel (gemm_pack-inl.h), so a product over a long
// K may be cut: the c of one call is the init of the next, and the bits are those of one call.
struct GemmTile {
  const float* a;  // [MR, lda], contiguous rows of kc
  size_t lda;      // elements
  const float*
      b;  // [kc, ldb], readable to the full width NV * lanes; fastest if aligned to a vector
  size_t ldb;
  size_t kc;                // may be 0
  const float* init;        // [MR, ld_init], readable to the full width NV * lanes
  size_t ld_init;           // 0: one row (a bias) for all
  const float* init_scale;  // [MR], or null for 1
  const float* scale;       // [MR], or null for 1
  const float* residual;    // [MR, ld_residual], cols wide, or null
  size_t ld_residual;
  bool relu;                  // max(x, 0); -0 and NaN stay as they are
  float* c[kMaxTileVectors];  // where each vector of columns begins: [MR, ldc]; may be init or
  size_t ldc;                 // residual themselves
  size_t cols;                // columns that c has, 1 .. NV * lanes
  // A tile that prefetches asks at each k for the line at `prefetch`, or for as many from there as
  // fill NV vectors, and goes prefetch_step bytes on. Into L2, and only a hint: any address will
  // do.
  const char* prefetch;
  size_t prefetch_step;
};

// Lines that a tile asks for at each k.
enum TilePrefetch { kNoLine, kOneLine, kAllLines, kNumTilePrefetches };

// The micro-kernels for one element type and SIMD target. Immutable, lives forever.
struct GemmKernel {
  static constexpr size_t kMaxNv = kMaxTileVectors;
  static constexpr size_t kMaxMr = 16;
  static constexpr size_t kMaxNr = kMaxNv * 16;  // floats across the widest tile
  using TileFn = void (*)(const GemmTile& tile);
  // Packs columns [0, cols) of a K x N matrix into a panel [k, nr]; see gemm_pack-inl.h. Element
  // (k, n) of the source is b[k * stride_k + n * stride_n]; columns past cols become 0.
  using PackFn = void (*)(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k,
                          size_t cols, size_t nr, float* panel);
  // out[c * ld_out + r] = in[r * ld_in + c] for r < rows, c < cols; no other element is touched.
  using TransposeFn = void (*)(const float* in, size_t ld_in, size_t rows, size_t cols, float* out,
                               size_t ld_out);

  const char* target;         // Highway's name of the SIMD target
  size_t lanes;               // floats a vector
  size_t best_nv;             // panel width (vectors) to prefer
  size_t max_mr[kMaxNv + 1];  // [nv]: the largest MR there is a tile for; 0: no tile of that width
  TileFn tile[kNumTilePrefetches][kMaxNv + 1][kMaxMr + 1];  // [][nv][mr]
  PackFn pack;
  TransposeFn transpose;

  size_t max_nv() const {
    size_t nv = kMaxNv;
    while (max_mr[nv] == 0) --nv;
    return nv;
  }
};

// Those of the active SIMD target.
const GemmKernel& GetGemmKernelF32();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_GEMM_KERNEL_H_
