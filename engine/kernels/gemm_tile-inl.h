// SPDX-License-Identifier: Apache-2.0
//
// The register tile of the matrix product: MR x NV accumulators that stay in registers over k.
// Included once for each SIMD target.
//
// A tile sees A and B as words: a word is one group of elements along k; B's is as wide as an
// accumulator or half as wide. Of the element type it only knows its Type:
//   kGroup                    elements of a group
//   kInteger                  whether accumulators are the bits of int32_t
//   kFloatSums                of kInteger: they are floats after all (int4)
//   AWord, Word               the C++ types of a word of A and of B
//   A Spread(AWord)           whatever MulAdd wants of that word, for all columns
//   B Load(const Word*)       a vector of words, one a column
//   V MulAdd(A, B, V)         accumulators plus the products of a group

#if defined(ENCORE_ENGINE_KERNELS_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENCORE_ENGINE_KERNELS_GEMM_TILE_INL_H_
#undef ENCORE_ENGINE_KERNELS_GEMM_TILE_INL_H_
#else
#define ENCORE_ENGINE_KERNELS_GEMM_TILE_INL_H_
#endif

#include <cstddef>

#include "engine/base/prefetch.h"
#include "engine/kernels/byte_rows-inl.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/gemm_slice.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

// Keeps a vector in a register at this point. Without it g++ 12 merges accumulators that start from
// the same value, and copies and spills them around the loop.
#if HWY_TARGET == HWY_EMU128
#define ENCORE_PIN(v)
#elif HWY_ARCH_X86
#define ENCORE_PIN(v) asm("" : "+v"((v).raw))
#elif HWY_ARCH_ARM
#define ENCORE_PIN(v) asm("" : "+w"((v).raw))
#else
#define ENCORE_PIN(v)
#endif

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using GemmTagF32 = hn::CappedTag<Accumulator, 16>;

// Measured with 24 accumulators: at 768 asking early gains 2 %, at 384 it costs 0.7.
inline constexpr size_t kLongChain = 512;

// Where word k of each of MR rows of A is. Rows go by fours, with one pointer each four and the
// rest by addressing modes (base + 1, 2, 3 strides): sixteen pointers of their own would leave no
// integer register for anything else.
template <size_t MR, typename Word>
struct RowPointers {
  static constexpr size_t kQuads = (MR + 3) / 4;
  const Word* quad[kQuads];
  ptrdiff_t stride;
  ptrdiff_t stride3;

  HWY_INLINE RowPointers(const Word* a, size_t lda)
      : stride(static_cast<ptrdiff_t>(lda)), stride3(3 * stride) {
    for (size_t q = 0; q < kQuads; ++q) quad[q] = a + 4 * q * lda;
  }
  // By reference: a word of several numbers is spread from memory, one by one.
  HWY_INLINE const Word& operator()(size_t row) const {
    const Word* p = quad[row / 4];
    switch (row % 4) {
      case 0:
        return p[0];
      case 1:
        return p[stride];
      case 2:
        return p[2 * stride];
      default:
        return p[stride3];
    }
  }
  HWY_INLINE void Next() {
    ENCORE_UNROLL
    for (size_t q = 0; q < kQuads; ++q) ++quad[q];
  }
};

// From sums of integers to floats.
template <bool kFloatSums, size_t MR, size_t NV, class V>
HWY_INLINE void Dequantize(const GemmTile& t, V (&acc)[MR][NV]) {
  const GemmTagF32 d;
  [[maybe_unused]] const hn::RebindToSigned<GemmTagF32> di;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  ENCORE_UNROLL
  for (size_t j = 0; j < NV; ++j) {
    const V col_scale = hn::LoadU(d, t.quant.columns.scale + j * kLanes);
    const V col_sum = hn::LoadU(d, t.quant.columns.sum + j * kLanes);
    const V bias = hn::LoadU(d, t.quant.bias + j * kLanes);
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      const V zero_point = hn::Set(d, t.in.a.quant[i].zero_point);
      const V scale = hn::Set(d, t.in.a.quant[i].scale);
      V sum = acc[i][j];
      if constexpr (!kFloatSums) {
        auto integers = hn::BitCast(di, sum);
        if constexpr (kByteOffset != 0) {  // its products with the column, exactly
          const V offset = hn::Set(d, static_cast<float>(kByteOffset));
          integers = hn::Add(integers, hn::ConvertTo(di, hn::Mul(col_sum, offset)));
        }
        sum = hn::ConvertTo(d, integers);
      }
      const V centred = hn::NegMulAdd(zero_point, col_sum, sum);
      acc[i][j] = hn::MulAdd(hn::Mul(centred, scale), col_scale, bias);
    }
  }
}

// What follows the chains, and the stores. kPartial: the tile's last columns are no full vector.
template <bool kPartial, size_t MR, size_t NV, class V>
HWY_INLINE void FinishTile(const GemmTile& t, V (&acc)[MR][NV]) {
  const GemmTagF32 d;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  if (t.out.scale != nullptr) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      const V scale = hn::Set(d, t.out.scale[i]);
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) acc[i][j] = hn::Mul(acc[i][j], scale);
    }
  }
  // Of vector j; only the last ones of a partial tile have fewer, or none.
  const auto columns = [&](size_t j) HWY_ATTR {
    if (!kPartial) return kLanes;
    return t.out.cols <= j * kLanes ? size_t{0} : HWY_MIN(kLanes, t.out.cols - j * kLanes);
  };
  if (t.out.residual.data != nullptr) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) {
        const float* residual = t.out.residual.data + i * t.out.residual.ld + j * kLanes;
        const V r =
            columns(j) == kLanes ? hn::LoadU(d, residual) : hn::LoadN(d, residual, columns(j));
        acc[i][j] = hn::Add(acc[i][j], r);
      }
    }
  }
  if (t.out.relu) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) {
        acc[i][j] = hn::IfThenZeroElse(hn::Lt(acc[i][j], hn::Zero(d)), acc[i][j]);
      }
    }
  }
  const size_t ldc = t.out.ldc;
  ENCORE_UNROLL
  for (size_t j = 0; j < NV; ++j) {
    float* HWY_RESTRICT c = t.out.c[j];
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      if (columns(j) == kLanes) {
        hn::StoreU(acc[i][j], d, c + i * ldc);
      } else {
        hn::StoreN(acc[i][j], d, c + i * ldc, columns(j));
      }
    }
  }
}

// The same for a partial tile, once for all sizes of accumulators in memory: rare, and small
// against the loop over k.
template <size_t NV>
HWY_NOINLINE void FinishPartialTile(const GemmTile& t, size_t mr,
                                    const float* HWY_RESTRICT full /* [mr, NV * lanes] */) {
  const GemmTagF32 d;
  using V = hn::Vec<GemmTagF32>;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  GemmTile row = t;
  for (size_t i = 0; i < mr; ++i) {
    V acc[1][NV];
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) acc[0][j] = hn::Load(d, full + (i * NV + j) * kLanes);
    FinishTile<true>(row, acc);
    if (row.out.scale != nullptr) ++row.out.scale;
    if (row.out.residual.data != nullptr) row.out.residual.data += row.out.residual.ld;
    for (size_t j = 0; j < NV; ++j) row.out.c[j] += row.out.ldc;
  }
}

// All that follows the chains.
template <class Type, size_t MR, size_t NV, class V>
HWY_INLINE void EndTile(const GemmTile& t, V (&acc)[MR][NV]) {
  const GemmTagF32 d;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  if constexpr (Type::kInteger) {
    if (t.quant.columns.scale != nullptr) Dequantize<Type::kFloatSums>(t, acc);
  }

  if (HWY_UNLIKELY(t.out.cols != NV * kLanes)) {
    HWY_ALIGN float full[MR * NV * kLanes];
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) hn::Store(acc[i][j], d, full + (i * NV + j) * kLanes);
    }
    FinishPartialTile<NV>(t, MR, full);
    return;
  }
  FinishTile<false>(t, acc);
}

// One group of several panels side by side. A vector of B serves all rows before the next is
// loaded.
template <size_t kPanels, class Type, size_t MR, size_t NV, class V, class Rows>
HWY_INLINE void StepWide(const typename Type::Word* HWY_RESTRICT b, const char* prefetch,
                         size_t panel_stride, const Rows& a, V (&acc)[MR][NV]) {
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  constexpr size_t kNv = NV / kPanels;
  decltype(Type::Spread(a(0))) ak[MR];
  ENCORE_UNROLL
  for (size_t i = 0; i < MR; ++i) ak[i] = Type::Spread(a(i));
  const size_t stride = panel_stride / sizeof(*b);
  ENCORE_UNROLL
  for (size_t j = 0; j < NV; ++j) {
    const size_t panel = j / kNv;
    const auto bj = Type::Load(b + panel * stride + j % kNv * kLanes);
    if (j % kNv * kLanes * sizeof(*b) % 64 == 0) {
      PrefetchL2(prefetch + panel * panel_stride + j % kNv * kLanes * sizeof(*b));
    }
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) acc[i][j] = Type::MulAdd(ak[i], bj, acc[i][j]);
  }
}

// Lines that fill NV vectors of words.
template <class Type, size_t NV>
constexpr size_t PrefetchLines() {
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  return HWY_MAX(NV * kLanes * sizeof(typename Type::Word) / 64, size_t{1});
}

// NV: vectors of columns in all, of kPanels panels side by side.
template <size_t MR, size_t NV, TilePrefetch kPrefetch, class Type, size_t kPanels = 1>
HWY_NOINLINE void RunGemmTile(const GemmTile& t) {
  using Word = typename Type::Word;
  using AWord = typename Type::AWord;
  static_assert(sizeof(Word) <= sizeof(Accumulator));
  const GemmTagF32 d;
  using V = hn::Vec<GemmTagF32>;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  RowPointers<MR, AWord> a(reinterpret_cast<const AWord*>(t.in.a.data),
                           t.in.a.stride / sizeof(AWord));
  const Word* HWY_RESTRICT b = static_cast<const Word*>(t.in.b);
  const size_t ldb = t.in.ldb;
  [[maybe_unused]] const char* prefetch = t.in.prefetch;
  [[maybe_unused]] const size_t prefetch_step = t.in.prefetch_step;

  V acc[MR][NV];
  ENCORE_UNROLL
  for (size_t i = 0; i < MR; ++i) {
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) {
      acc[i][j] = hn::LoadU(d, t.in.init + i * t.in.ld_init + j * kLanes);
    }
  }
  if (t.in.init_scale != nullptr) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      const V scale = hn::Set(d, t.in.init_scale[i]);
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) acc[i][j] = hn::Mul(acc[i][j], scale);
    }
  }
  // Lines of the residual and of c that the last steps need, by then in L1: else all of them are
  // asked for at once there. A short chain would wait for the asking as long as that.
  if (t.in.kc >= kLongChain) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) PrefetchWrite(t.out.c[j] + i * t.out.ldc);
    }
    if (t.out.residual.data != nullptr) {
      ENCORE_UNROLL
      for (size_t i = 0; i < MR; ++i) {
        ENCORE_UNROLL
        for (size_t j = 0; j < NV; ++j) {
          PrefetchL1(t.out.residual.data + i * t.out.residual.ld + j * kLanes);
        }
      }
    }
  }
  ENCORE_NO_UNROLL
  for (size_t k = t.in.kc; k != 0; --k) {
    if constexpr (kPanels > 1) {
      StepWide<kPanels, Type>(b, prefetch, t.in.panel_stride, a, acc);
      b += ldb;
      prefetch += prefetch_step;
      a.Next();
      continue;
    }
    decltype(Type::Load(b)) bk[NV];
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) bk[j] = Type::Load(b + j * kLanes);
    b += ldb;
    if constexpr (kPrefetch != kNoLine) {
      constexpr size_t kLines = kPrefetch == kOneLine ? 1 : PrefetchLines<Type, NV>();
      ENCORE_UNROLL
      for (size_t line = 0; line < kLines; ++line) PrefetchL2(prefetch + 64 * line);
      prefetch += prefetch_step;
    }
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      const auto ai = Type::Spread(a(i));
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) acc[i][j] = Type::MulAdd(ai, bk[j], acc[i][j]);
    }
    a.Next();
  }
  ENCORE_UNROLL
  for (size_t i = 0; i < MR; ++i) {
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) ENCORE_PIN(acc[i][j]);
  }
  EndTile<Type>(t, acc);
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
