// SPDX-License-Identifier: Apache-2.0
//
// The tiles of wide_product.h.

#include "bench/cycles/wide_product.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/cycles/wide_product.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/gemm_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = internal::HWY_NAMESPACE::GemmTagF32;
using V = hn::Vec<Tag>;
constexpr size_t kLanes = hn::MaxLanes(Tag());

template <size_t MR, size_t NV, size_t P>
HWY_NOINLINE void RunWide(const float* x, const internal::PackedView& view, float* y,
                          size_t panel) {
  const Tag d;
  constexpr size_t kNr = NV * kLanes;
  const float* HWY_RESTRICT b = reinterpret_cast<const float*>(view.panel(panel));
  const size_t stride = view.panel_rows * kNr;  // from panel to panel
  internal::HWY_NAMESPACE::RowPointers<MR, float> a(x, view.k);
  V acc[MR][P * NV];
  ENCORE_UNROLL
  for (size_t i = 0; i < MR * P * NV; ++i) {
    acc[i / (P * NV)][i % (P * NV)] = hn::Zero(d);
    ENCORE_PIN(acc[i / (P * NV)][i % (P * NV)]);
  }
  ENCORE_NO_UNROLL
  for (size_t k = view.k; k != 0; --k) {
    V ak[MR];
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) ak[i] = hn::Set(d, a(i));
    ENCORE_UNROLL
    for (size_t p = 0; p < P; ++p) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) {
        const float* at = b + p * stride + j * kLanes;
        const V bk = hn::LoadU(d, at);
        // The panels that follow, as the library's tiles do.
        if ((j * kLanes * sizeof(float)) % 64 == 0) ENCORE_PREFETCH_L2(at + P * stride);
        ENCORE_UNROLL
        for (size_t i = 0; i < MR; ++i) {
          acc[i][p * NV + j] = hn::MulAdd(ak[i], bk, acc[i][p * NV + j]);
        }
      }
    }
    b += kNr;
    a.Next();
  }
  ENCORE_UNROLL
  for (size_t i = 0; i < MR; ++i) {
    ENCORE_UNROLL
    for (size_t j = 0; j < P * NV; ++j) {
      hn::StoreU(acc[i][j], d, y + i * view.n + panel * kNr + j * kLanes);
    }
  }
}

template <size_t MR, size_t NV, size_t P>
void Run(const float* x, const internal::PackedView& b, float* y, size_t begin, size_t end) {
  for (size_t panel = begin; panel < end; panel += P) RunWide<MR, NV, P>(x, b, y, panel);
}

template <size_t MR, size_t NV, size_t P>
constexpr WideProduct Make() {
  return {MR, NV, P, &Run<MR, NV, P>};
}

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86 || HWY_ARCH_ARM_A64  // 32 registers
constexpr WideProduct kAll[] = {Make<1, 3, 2>(), Make<1, 3, 4>(), Make<1, 3, 8>(),
                                Make<2, 3, 2>(), Make<2, 3, 4>(), Make<4, 3, 2>()};
#else  // 16
constexpr WideProduct kAll[] = {Make<1, 2, 2>(), Make<1, 2, 4>(), Make<1, 2, 6>(), Make<2, 2, 2>(),
                                Make<2, 2, 3>()};
#endif

std::span<const WideProduct> TargetWideProducts() { return kAll; }

}  // namespace
}  // namespace encore::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::bench {

HWY_EXPORT(TargetWideProducts);

std::span<const WideProduct> WideProducts() { return HWY_DYNAMIC_DISPATCH(TargetWideProducts)(); }

}  // namespace encore::bench
#endif  // HWY_ONCE
