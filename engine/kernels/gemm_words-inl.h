// SPDX-License-Identifier: Apache-2.0
//
// Packing of the right-hand matrix for element types with groups: as gemm_pack-inl.h draws it, with
// a word of one group in the place of a float. Included once for each SIMD target.
//
// Of the element type it knows:
//   kGroup                                  elements of a group
//   uint32_t ToWord(const float* e)         the word of the elements e[0 .. kGroup - 1]
//   void ToWords(in, words, out)            the words of in[0 .. words * kGroup - 1], contiguous

#if defined(ENCORE_ENGINE_KERNELS_GEMM_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_GEMM_WORDS_INL_H_
#undef ENCORE_ENGINE_KERNELS_GEMM_WORDS_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_GEMM_WORDS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "engine/kernels/gemm_pack-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {

// A word of up to kGroup elements, stride apart; those missing are zeros.
template <class Type>
uint32_t GatherWord(const float* in, ptrdiff_t stride, size_t count) {
  float elements[Type::kGroup] = {};
  for (size_t i = 0; i < count; ++i) elements[i] = in[static_cast<ptrdiff_t>(i) * stride];
  return Type::ToWord(elements);
}

// out[w * ld_out + r] = word w of row r, for contiguous rows of k elements.
template <class Type>
void TransposeWords(const float* in, size_t ld_in, size_t rows, size_t k, void* out,
                    size_t ld_out) {
  // A piece is moved as floats, whose bits nothing looks at, and stays in L1.
  constexpr size_t kRows = 16;
  constexpr size_t kWords = 64;
  HWY_ALIGN uint32_t words[kRows * kWords];
  uint32_t* const to = static_cast<uint32_t*>(out);
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
      }
      Transpose(reinterpret_cast<const float*>(words), kWords, piece, all,
                to + k0 / Type::kGroup * ld_out + r0, ld_out);
    }
  }
}

template <class Type>
void PackWords(const float* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t cols,
               size_t nr, void* panel) {
  const size_t groups = (k + Type::kGroup - 1) / Type::kGroup;
  uint32_t* const out = static_cast<uint32_t*>(panel);
  if (stride_k == 1 && stride_n >= 0) {
    TransposeWords<Type>(b, static_cast<size_t>(stride_n), cols, k, panel, nr);
  } else {
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

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
