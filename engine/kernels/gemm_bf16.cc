// SPDX-License-Identifier: Apache-2.0
//
// The bf16 micro-kernels of every SIMD target. A group is a pair of elements, and its products are
// two FMAs, the odd element's first: as VDPBF16PS has it on targets that have that instruction, and
// by f32 FMAs on others. There, rows of A are floats that are bf16 numbers, so that each is
// broadcast by a load, and the odd one of a pair is first, as f32 tiles need it. NEON's BFDOT
// rounds otherwise and is not used. AMX sums in another order: a kernel of its own, for those who
// ask for it.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/base/bf16.h"
#include "engine/base/strict_math.h"
// AVX3_DL's products are AVX3's, and so is what is beside AMX.
#define ENCORE_SAME_ON_AVX3 HWY_AVX3_DL
#ifdef ENCORE_DISABLED_TARGETS
#define ENCORE_AMX_TARGET HWY_AVX3
#endif
#include "engine/kernels/fewer_avx3.h"
#include "engine/kernels/gemm_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gemm_bf16.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/dispatch.h"
#include "engine/kernels/gemm_amx-inl.h"
#include "engine/kernels/gemm_spread-inl.h"
#include "engine/kernels/gemm_tiles-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

using TagU32 = hn::RebindToUnsigned<GemmTagF32>;
using VecF32 = hn::Vec<GemmTagF32>;
using VecU32 = hn::Vec<TagU32>;

// To nearest, ties to even, and NaN quiet, as base/bf16.h; the lower halves are left as they fall.
HWY_INLINE VecU32 RoundedBits(VecF32 v) {
  const TagU32 du;
  const VecU32 bits = hn::BitCast(du, v);
  const VecU32 odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const VecU32 rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFFu)), odd);
  const VecU32 quiet = hn::Or(bits, hn::Set(du, 0x400000u));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
}

// The words of two rows of floats, one element of each a word.
HWY_INLINE VecU32 Interleave(VecF32 even, VecF32 odd) {
  const TagU32 du;
  return hn::Or(hn::ShiftRight<16>(RoundedBits(even)),
                hn::And(RoundedBits(odd), hn::Set(du, 0xFFFF0000u)));
}

struct PackBf16 {
  static constexpr size_t kGroup = 2;
  static uint32_t ToWord(const float* e) {
    return F32ToBf16(e[0]) | static_cast<uint32_t>(F32ToBf16(e[1])) << 16;
  }
  // Pairs of bf16 numbers, one after another.
  static void ToWords(const float* in, size_t words, uint32_t* out) {
    const GemmTagF32 d;
    const hn::Rebind<uint16_t, GemmTagF32> du16;
    const size_t lanes = hn::Lanes(d);
    const auto narrow = [&](VecF32 v) HWY_ATTR {
      return hn::TruncateTo(du16, hn::ShiftRight<16>(RoundedBits(v)));
    };
    uint16_t* const to = reinterpret_cast<uint16_t*>(out);
    const size_t count = 2 * words;
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(narrow(hn::LoadU(d, in + i)), du16, to + i);
    if (i < count) hn::StoreN(narrow(hn::LoadN(d, in + i, count - i)), du16, to + i, count - i);
  }
  // Values of attention are rows: two of them make a row of words.
  static void PackRows(const float* b, ptrdiff_t stride, size_t k, size_t cols, size_t nr,
                       uint32_t* out) {
    const GemmTagF32 d;
    const TagU32 du;
    const size_t lanes = hn::Lanes(d);
    for (size_t g = 0; 2 * g < k; ++g) {
      const float* HWY_RESTRICT even = b + static_cast<ptrdiff_t>(2 * g) * stride;
      const bool has_odd = 2 * g + 1 < k;
      const float* HWY_RESTRICT odd = has_odd ? even + stride : even;
      for (size_t n = 0; n < nr; n += lanes) {
        const size_t left = n < cols ? HWY_MIN(cols - n, lanes) : 0;
        const VecF32 low = left == lanes ? hn::LoadU(d, even + n) : hn::LoadN(d, even + n, left);
        VecF32 high = left == lanes ? hn::LoadU(d, odd + n) : hn::LoadN(d, odd + n, left);
        if (!has_odd) high = hn::Zero(d);
        hn::StoreU(Interleave(low, high), du, out + g * nr + n);
      }
    }
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_ZEN4

using TagBf16 = hn::Repartition<hwy::bfloat16_t, GemmTagF32>;

struct TypeBf16 {
  using AWord = uint32_t;
  using Word = uint32_t;
  using Vec = hn::Vec<TagBf16>;
  static constexpr size_t kGroup = 2;
  static constexpr bool kInteger = false;
  static HWY_INLINE Vec Spread(const AWord& word) {
    return hn::BitCast(TagBf16(), hn::Set(TagU32(), word));
  }
  static HWY_INLINE Vec Load(const Word* words) {
    return hn::BitCast(TagBf16(), hn::LoadU(TagU32(), words));
  }
  static HWY_INLINE VecF32 MulAdd(Vec a, Vec b, VecF32 sum) {
    VecF32 unused = hn::Zero(GemmTagF32());
    return hn::ReorderWidenMulAccumulate(GemmTagF32(), a, b, sum, unused);
  }

  // The most rows of a tile, by its vectors of columns. The product has a latency of 6 cycles and
  // two begin in a cycle: a tile wants 12 accumulators or more.
  static constexpr size_t kMaxMr[] = {0, 12, 8, 8, 6};
  static constexpr size_t kBestNv = 3;
  static constexpr size_t kWidePanels[][3] = {{}, {}, {}, {}, {}};
};

void PackLhsBf16(const LhsToPack& rows) {
  const GemmTagF32 d;
  const TagBf16 db;
  const hn::RebindToUnsigned<TagBf16> du16;
  constexpr size_t kLanes = hn::MaxLanes(GemmTagF32());
  const size_t k = rows.k;
  for (size_t r = 0; r < rows.rows; ++r) {
    const float* in = rows.in.row(r);  // may be out
    uint16_t* out = reinterpret_cast<uint16_t*>(rows.out.From(r).data);
    size_t i = 0;
    for (; i + 2 * kLanes <= k; i += 2 * kLanes) {
      const VecF32 low = hn::LoadU(d, in + i);
      const VecF32 high = hn::LoadU(d, in + i + kLanes);
      hn::StoreU(hn::BitCast(du16, hn::OrderedDemote2To(db, low, high)), du16, out + i);
    }
    if (i == k) continue;
    const size_t left = k - i;
    const VecF32 low = hn::LoadN(d, in + i, HWY_MIN(left, kLanes));
    const VecF32 high = left > kLanes ? hn::LoadN(d, in + i + kLanes, left - kLanes) : hn::Zero(d);
    hn::StoreN(hn::BitCast(du16, hn::OrderedDemote2To(db, low, high)), du16, out + i,
               (left + 1) / 2 * 2);
  }
}

constexpr GemmKernel kKernel = KernelOf<TypeBf16, PackBf16>(&PackLhsBf16);

#else  // by FMAs

struct TypeBf16 {
  struct AWord {
    float odd;
    float even;
  };
  using Word = uint32_t;
  // Its constructors are written down because GCC's own are not of the SIMD target.
  struct Pair {
    HWY_INLINE Pair() {}
    HWY_INLINE Pair(VecF32 first, VecF32 second) : even(first), odd(second) {}
    VecF32 even;
    VecF32 odd;
  };
  static constexpr size_t kGroup = 2;
  static constexpr bool kInteger = false;
  static HWY_INLINE Pair Spread(const AWord& word) {
    return {hn::Set(GemmTagF32(), word.even), hn::Set(GemmTagF32(), word.odd)};
  }
  static HWY_INLINE Pair Load(const Word* words) {
    const GemmTagF32 d;
    const TagU32 du;
    const VecU32 bits = hn::LoadU(du, words);
    return {hn::BitCast(d, hn::ShiftLeft<16>(bits)),
            hn::BitCast(d, hn::And(bits, hn::Set(du, 0xFFFF0000u)))};
  }
  static HWY_INLINE VecF32 MulAdd(const Pair& a, const Pair& b, VecF32 sum) {
    return hn::MulAdd(a.even, b.even, hn::MulAdd(a.odd, b.odd, sum));
  }

// MR * NV accumulators, 2 NV vectors of B, two of A and a mask.
#if ENCORE_32_REGISTERS
  static constexpr size_t kMaxMr[] = {0, 12, 12, 7, 5};
  static constexpr size_t kBestNv = 3;
  static constexpr size_t kWidePanels[][3] = {{}, {}, {}, {}, {}};
#elif HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86  // 16 registers
  static constexpr size_t kMaxMr[] = {0, 8, 4, 2, 0};
  static constexpr size_t kBestNv = 2;
  static constexpr size_t kWidePanels[][3] = {{}, {}, {0, 3, 2}, {0, 2, 0}, {}};
#else  // 16 registers, and without FMA each product needs one more
  static constexpr size_t kMaxMr[] = {0, 6, 3, 2, 0};
  static constexpr size_t kBestNv = 2;
  static constexpr size_t kWidePanels[][3] = {{}, {}, {0, 2, 0}, {}, {}};
#endif
};

void PackLhsBf16(const LhsToPack& rows) {
  const GemmTagF32 d;
  const TagU32 du;
  const size_t lanes = hn::Lanes(d);
  const VecU32 upper = hn::Set(du, 0xFFFF0000u);
  for (size_t r = 0; r < rows.rows; ++r) {
    const float* in = rows.in.row(r);  // may be out
    float* out = reinterpret_cast<float*>(rows.out.From(r).data);
    const auto round = [&](VecF32 v) HWY_ATTR {  // and the odd one of a pair first
      return hn::Shuffle2301(hn::BitCast(d, hn::And(RoundedBits(v), upper)));
    };
    size_t i = 0;
    for (; i + lanes <= rows.k; i += lanes) hn::StoreU(round(hn::LoadU(d, in + i)), d, out + i);
    const size_t left = rows.k - i;
    if (left != 0) hn::StoreN(round(hn::LoadN(d, in + i, left)), d, out + i, (left + 1) / 2 * 2);
  }
}

constexpr GemmKernel kKernel = KernelOf<TypeBf16, PackBf16, SpreadBlocks>(&PackLhsBf16);

#endif

const GemmKernel* TargetGemmKernelBf16() { return &kKernel; }

#if ENCORE_TARGET_HAS_AMX

struct TypeBf16Amx {
  using Word = uint32_t;
  static constexpr size_t kGroup = 2;
  static constexpr bool kInteger = false;
};

void PackLhsPairs(const LhsToPack& rows) {
  for (size_t r = 0; r < rows.rows; ++r) {
    const float* in = rows.in.row(r);  // may be where out is: stores stay behind loads
    uint16_t* out = reinterpret_cast<uint16_t*>(rows.out.From(r).data);
    float last = 0;
    if (rows.k % 2 != 0) std::memcpy(&last, in + rows.k - 1, sizeof last);
    PackBf16::ToWords(in, rows.k / 2, reinterpret_cast<uint32_t*>(out));
    if (rows.k % 2 != 0) {
      out[rows.k - 1] = F32ToBf16(last);
      out[rows.k] = 0;
    }
  }
}

constexpr GemmKernel MakeAmxKernel() {
  GemmKernel kernel = kKernel;
  kernel.target = "AMX";
  kernel.run[1] = &amx::Run<TypeBf16Amx, 1>;
  kernel.run[2] = &amx::Run<TypeBf16Amx, 2>;
  kernel.run[3] = &amx::Run<TypeBf16Amx, 3>;
  kernel.run[4] = &amx::Run<TypeBf16Amx, 4>;
  kernel.only_block_kernel = true;
  kernel.a_bytes = sizeof(uint16_t);
  kernel.pack_lhs = &PackLhsPairs;
  return kernel;
}
constexpr GemmKernel kAmxKernel = MakeAmxKernel();

#else
constexpr const GemmKernel& kAmxKernel = kKernel;
#endif

const GemmKernel* TargetGemmKernelBf16Amx() { return &kAmxKernel; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetGemmKernelBf16);
HWY_EXPORT(TargetGemmKernelBf16Amx);

const GemmKernel& GetGemmKernelBf16() { return *ENCORE_DISPATCH(TargetGemmKernelBf16)(); }
const GemmKernel& GetGemmKernelBf16Amx() { return *ENCORE_DISPATCH(TargetGemmKernelBf16Amx)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE
