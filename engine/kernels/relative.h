// SPDX-License-Identifier: Apache-2.0
//
// Relative embeddings in attention: products of embeddings with queries or with keys are put where
// the scores of queries and keys want them. An embedding belongs to a distance, so both kernels
// read along diagonals. They move floats and add at most once: no bit depends on the SIMD target.

#ifndef ENCORE_ENGINE_KERNELS_RELATIVE_H_
#define ENCORE_ENGINE_KERNELS_RELATIVE_H_

#include <cstddef>
#include <cstdint>

namespace encore::inline v0_1::internal {

struct RelativeArgs {
  const float* products;
  size_t ld_products;
  // An index for each distance: key j and query r have index[j - r], so it points at that of key 0
  // and query 0, and r > j reads before it. Each is equal to the one before or 1 more. Readable to
  // 15 behind the last key's.
  const int32_t* index;
  int32_t low;       // the index of products' first row or column
  const float* add;  // [rows, ld_add], or null for 0; of_queries only
  size_t ld_add;
  float* out;  // [rows, ld_out]
  size_t ld_out;
  size_t rows;  // queries
  size_t cols;  // keys. Rows of `add` and `out` are read and written to whole 16s
};

struct RelativeKernels {
  // out[r][j] = products[r][index[j - r] - low] + add[r][j]. Rows of products are readable to 15
  // behind the last that is named.
  void (*of_queries)(const RelativeArgs& args);
  // out[r][j] = products[index[j - r] - low][j], of at most kRelativeRows queries. Rows of products
  // are readable to whole 16s.
  void (*of_keys)(const RelativeArgs& args);
};

inline constexpr size_t kRelativeRows = 64;

// Those of the active SIMD target.
const RelativeKernels& GetRelativeKernels();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_RELATIVE_H_
