// SPDX-License-Identifier: Apache-2.0
//
// Softmax of whole rows, and its online form over tiles of keys for attention. Sums run over 16
// virtual lanes (reduce-inl.h), so bits do not depend on the SIMD target.

#ifndef ENCORE_ENGINE_KERNELS_SOFTMAX_H_
#define ENCORE_ENGINE_KERNELS_SOFTMAX_H_

#include <cstddef>

namespace encore::inline v0_1::internal {

// A tile of attention scores: `rows` queries by `cols` keys.
struct ScoreTile {
  float* scores;     // [rows, ld_scores]: q k^T, not scaled
  size_t ld_scores;  // elements, >= cols
  size_t rows;
  size_t cols;
  // Each row may be read and written up to the next multiple of 16 elements: whole vectors, whose
  // stores the product that follows need not wait for.
  bool whole_vectors = false;
  float scale;            // z = scores * scale + additive
  const float* additive;  // [rows, ld_additive], or null for 0; -inf hides a key
  ptrdiff_t ld_additive;  // any: -1 for what depends on the distance of key and query alone
  // [rows]: keys at and after it are hidden (causal); null for cols in every row.
  const size_t* visible;
  // [rows]: keys before it are hidden (a window); null for 0 in every row.
  const size_t* first;
};

struct SoftmaxKernels {
  // y = softmax(x) over each of `rows` rows of `cols`; y may be x. A row of only -inf gives zeros.
  void (*rows)(const float* x, size_t ldx, float* y, size_t ldy, size_t rows, size_t cols);

  // One step of the online softmax (Milakov & Gimelshein 2018, arXiv:1805.02867), for each row:
  //   m' = max(m, max z);  p = e^(z - m') replaces the scores;  factor = e^(m - m');  l' = l factor
  //   + sum p
  // Start with m = -inf, l = 0. Hidden keys get p = 0 exactly; while m' is -inf, p and factor are
  // 0. m is in units of its own, those of the scores without a mask and of z with one: all tiles of
  // a row need the same scale, and all `additive` or none.
  void (*tile)(const ScoreTile& tile, float* m /* [rows] */, float* l /* [rows] */,
               float* factor /* [rows] */);

  // The attention weights, after the last tile gave m and l: scores are replaced by e^(z - m) / l,
  // hidden ones by 0. A row with l = 0 gets zeros.
  void (*weights)(const ScoreTile& tile, const float* m, const float* l);
};

// Those of the active SIMD target.
const SoftmaxKernels& GetSoftmaxKernels();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_SOFTMAX_H_
