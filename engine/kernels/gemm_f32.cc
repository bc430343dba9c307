// SPDX-License-Identifier: Apache-2.0
//
// The f32 micro-kernels of every SIMD target.

#include "engine/kernels/gemm_kernel.h"

#include <cstddef>

#include "engine/base/strict_math.h"
#include "engine/kernels/fewer_avx3.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gemm_f32.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/dispatch.h"
#include "engine/kernels/gemm_tiles-inl.h"
#include "engine/kernels/unroll.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::inline v0_1::internal::HWY_NAMESPACE {
namespace {

// What gemm_tile-inl.h and gemm_tiles-inl.h want to know.
struct TypeF32 {
  using AWord = float;
  using Word = float;
  using Vec = hn::Vec<GemmTagF32>;
  static constexpr size_t kGroup = 1;
  static constexpr bool kInteger = false;
  static HWY_INLINE Vec Spread(const AWord& word) { return hn::Set(GemmTagF32(), word); }
  static HWY_INLINE Vec Load(const Word* words) { return hn::LoadU(GemmTagF32(), words); }
  static HWY_INLINE Vec MulAdd(Vec a, Vec b, Vec sum) { return hn::MulAdd(a, b, sum); }

// Tile sizes by the number of registers. The tile needs MR * NV accumulators, NV vectors of B and
// one of A; at least latency * throughput = 4 * 2 = 8 accumulators keep both FMA pipes busy, and
// more rows mean fewer loads a product.
#if ENCORE_32_REGISTERS
  static constexpr size_t kMaxMr[] = {0, 16, 12, 9, 6};
  static constexpr size_t kBestNv = 3;
  // Panels of a wide tile by [nv][mr]: none, since one panel is read as fast as L2 gives. Warm, two
  // or four side by side take 0 to 20 % longer than one.
  static constexpr size_t kWidePanels[][3] = {{}, {}, {}, {}, {}};
#elif HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86  // 16 registers
  static constexpr size_t kMaxMr[] = {0, 8, 6, 4, 0};
  // 4 x 3 has 7 loads for 12 products, 6 x 2 has 8, and one pointer more to A. At best both reach
  // 97 to 98 % of Zen 3's peak from L1; on a busy machine the former loses less.
  static constexpr size_t kBestNv = 3;
  // For 8 accumulators or more.
  static constexpr size_t kWidePanels[][3] = {{}, {}, {0, 4, 3}, {0, 3, 2}, {}};
#else  // 16 registers, and without FMA the product needs one more
  static constexpr size_t kMaxMr[] = {0, 8, 6, 3, 0};
  static constexpr size_t kBestNv = 2;
  static constexpr size_t kWidePanels[][3] = {{}, {}, {0, 4, 2}, {0, 3, 0}, {}};
#endif
};

constexpr GemmKernel kKernel = KernelOf<TypeF32, PackF32>(nullptr);

const GemmKernel* TargetGemmKernelF32() { return &kKernel; }

}  // namespace

// For gemm_spread-inl.h.
const WidthKernels& TargetWidthF32(size_t nv);
const WidthKernels& TargetWidthF32(size_t nv) {
  static constexpr const WidthKernels* kWidths[] = {
      nullptr, &kWidth<TypeF32, 1>, &kWidth<TypeF32, 2>, &kWidth<TypeF32, 3>, &kWidth<TypeF32, 4>};
  return *kWidths[nv];
}

}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::inline v0_1::internal {

HWY_EXPORT(TargetGemmKernelF32);

const GemmKernel& GetGemmKernelF32() { return *ENCORE_DISPATCH(TargetGemmKernelF32)(); }

}  // namespace encore::internal
#endif  // HWY_ONCE
