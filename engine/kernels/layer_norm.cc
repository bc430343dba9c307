// SPDX-License-Identifier: Apache-2.0
//
// The LayerNorm kernels of every SIMD target (Ba, Kiros & Hinton 2016, arXiv:1607.06450).

#include "engine/kernels/layer_norm.h"

#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/layer_norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/reduce-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace encore::internal::HWY_NAMESPACE {
namespace {

struct NormArgs {
  const float* x;
  size_t ldx;
  const float* weight;  // [cols] or null
  const float* bias;    // [cols] or null
  float epsilon;
  float* y;
  size_t ldy;
  size_t cols;
};

// Sums over each of R rows what term(row, x) makes of its elements, 16 at a time.
template <size_t R, class Term>
HWY_INLINE void SumRows(const NormArgs& args, Term term, float* sums) {
  const TagLanes d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t full = args.cols / kVirtualLanes * kVirtualLanes;
  Lanes16 acc[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) acc[r] = SetLanes(0.0f);
  for (size_t c = 0; c < full; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const VecLanes x = hn::LoadU(d, args.x + r * args.ldx + c + j * kLanes);
        acc[r].v[j] = term(r, x, acc[r].v[j]);
      }
    }
  }
  if (full < args.cols) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const size_t count = LanesBelow(args.cols - full, j);
        const VecLanes x = hn::LoadN(d, args.x + r * args.ldx + full + j * kLanes, count);
        acc[r].v[j] = hn::IfThenElse(hn::FirstN(d, count), term(r, x, acc[r].v[j]), acc[r].v[j]);
      }
    }
  }
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) sums[r] = SumLanes(acc[r]);
}

template <size_t R>
HWY_NOINLINE void NormRows(const NormArgs& args) {
  const TagLanes d;
  const float count = static_cast<float>(args.cols);

  float sums[R];
  SumRows<R>(
      args, [](size_t, VecLanes x, VecLanes acc) HWY_ATTR { return hn::Add(acc, x); }, sums);
  VecLanes mean[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) mean[r] = hn::Set(d, sums[r] / count);

  SumRows<R>(
      args,
      [&mean](size_t r, VecLanes x, VecLanes acc) HWY_ATTR {
        const VecLanes centred = hn::Sub(x, mean[r]);
        return hn::MulAdd(centred, centred, acc);
      },
      sums);
  VecLanes scale[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    scale[r] = hn::Set(d, 1.0f / std::sqrt(sums[r] / count + args.epsilon));
  }

  const size_t lanes = hn::Lanes(d);
  for (size_t c = 0; c < args.cols; c += lanes) {
    const size_t left = args.cols - c;
    const VecLanes weight =
        args.weight != nullptr ? LoadBelow(args.weight, c, args.cols) : hn::Set(d, 1.0f);
    const VecLanes bias = args.bias != nullptr ? LoadBelow(args.bias, c, args.cols) : hn::Zero(d);
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      const VecLanes x = LoadBelow(args.x + r * args.ldx, c, args.cols);
      const VecLanes y = hn::MulAdd(hn::Mul(hn::Sub(x, mean[r]), scale[r]), weight, bias);
      float* out = args.y + r * args.ldy + c;
      if (left >= lanes) {
        hn::StoreU(y, d, out);
      } else {
        hn::StoreN(y, d, out, left);
      }
    }
  }
}

void LayerNormRows(const float* x, size_t ldx, const float* weight, const float* bias,
                   double epsilon, float* y, size_t ldy, size_t rows, size_t cols) {
  NormArgs args{x, ldx, weight, bias, static_cast<float>(epsilon), y, ldy, cols};
  size_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
    args.x = x + r * ldx;
    args.y = y + r * ldy;
    NormRows<kRowsAtOnce>(args);
  }
  for (; r < rows; ++r) {
    args.x = x + r * ldx;
    args.y = y + r * ldy;
    NormRows<1>(args);
  }
}

constexpr LayerNormKernels kKernels = {.rows = &LayerNormRows};

const LayerNormKernels* TargetLayerNormKernels() { return &kKernels; }

}  // namespace
}  // namespace encore::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::internal {

HWY_EXPORT(TargetLayerNormKernels);

const LayerNormKernels& GetLayerNormKernels() {
  return *HWY_DYNAMIC_DISPATCH(TargetLayerNormKernels)();
}

}  // namespace encore::internal
#endif  // HWY_ONCE
