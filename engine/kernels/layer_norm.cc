// SPDX-License-Identifier: Apache-2.0
//
// The LayerNorm kernels of every SIMD target (Ba, Kiros & Hinton 2016, arXiv:1607.06450).

#include "engine/kernels/layer_norm.h"

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

constexpr size_t kLanes = hn::MaxLanes(TagLanes());

// Rows that are walked at a time: enough chains of additions to hide their latency.
constexpr size_t kRowsAtOnce = kLaneVecs <= 2 ? 4 : 1;

// Where registers allow twice as many: they and their results should fit into a first-level cache
// of 32 KiB.
constexpr size_t kMoreRowsAtOnce = kLaneVecs == 1 ? 8 : kRowsAtOnce;
constexpr size_t kMoreRowsCols = 512;

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
HWY_INLINE void SumTerms(const NormArgs& args, Term term, float* sums) {
  const TagLanes d;
  Lanes16 acc[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) acc[r] = SetLanes(0.0f);
  size_t c = 0;
  for (; c + kVirtualLanes <= args.cols; c += kVirtualLanes) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const VecLanes x = hn::LoadU(d, args.x + r * args.ldx + c + j * kLanes);
        acc[r].v[j] = term(r, x, acc[r].v[j]);
      }
    }
  }
  if (c < args.cols) {
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      ENCORE_UNROLL
      for (size_t j = 0; j < kLaneVecs; ++j) {
        const size_t count = LanesBelow(args.cols - c, j);
        const VecLanes x = hn::LoadN(d, args.x + r * args.ldx + c + j * kLanes, count);
        acc[r].v[j] = hn::IfThenElse(hn::FirstN(d, count), term(r, x, acc[r].v[j]), acc[r].v[j]);
      }
    }
  }
  constexpr size_t kStep = R < 4 ? R : 4;
  ENCORE_UNROLL
  for (size_t r = 0; r < R; r += kStep) {
    Lanes16 some[kStep];
    ENCORE_UNROLL
    for (size_t i = 0; i < kStep; ++i) some[i] = acc[r + i];
    StoreRows<kStep>(SumLanes(some), sums + r);
  }
}

// y = (x - mean) * scale * weight + bias of R rows.
template <size_t R, bool kAffine>
HWY_INLINE void ScaleRows(const NormArgs& args, const float* means, const float* scales) {
  const TagLanes d;
  VecLanes mean[R], scale[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    mean[r] = hn::Set(d, means[r]);
    scale[r] = hn::Set(d, scales[r]);
  }
  const auto apply = [&](size_t r, VecLanes x, VecLanes weight, VecLanes bias) HWY_ATTR {
#if defined(ENCORE_TEST_BREAK_CONTRACTION) && HWY_TARGET == HWY_AVX2
    // Only for a library that `encore verify` must refuse: one rounding less, on one target.
    return hn::MulAdd(hn::MulSub(x, scale[r], hn::Mul(mean[r], scale[r])), weight, bias);
#endif
    return hn::MulAdd(hn::Mul(hn::Sub(x, mean[r]), scale[r]), weight, bias);
  };
  const VecLanes one = hn::Set(d, 1.0f);
  size_t c = 0;
  for (; c + kLanes <= args.cols; c += kLanes) {
    const VecLanes weight = kAffine || args.weight != nullptr ? hn::LoadU(d, args.weight + c) : one;
    const VecLanes bias =
        kAffine || args.bias != nullptr ? hn::LoadU(d, args.bias + c) : hn::Zero(d);
    ENCORE_UNROLL
    for (size_t r = 0; r < R; ++r) {
      const VecLanes x = hn::LoadU(d, args.x + r * args.ldx + c);
      hn::StoreU(apply(r, x, weight, bias), d, args.y + r * args.ldy + c);
    }
  }
  const size_t left = args.cols - c;
  if (left == 0) return;
  const VecLanes weight = args.weight != nullptr ? hn::LoadN(d, args.weight + c, left) : one;
  const VecLanes bias = args.bias != nullptr ? hn::LoadN(d, args.bias + c, left) : hn::Zero(d);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) {
    const VecLanes x = hn::LoadN(d, args.x + r * args.ldx + c, left);
    hn::StoreN(apply(r, x, weight, bias), d, args.y + r * args.ldy + c, left);
  }
}

template <size_t R>
HWY_NOINLINE void NormRows(const NormArgs& all, size_t row) {
  NormArgs args = all;
  args.x += row * args.ldx;
  args.y += row * args.ldy;
  const TagLanes d;
  const TagRows d_rows;
  const VecRows count = hn::Set(d_rows, static_cast<float>(args.cols));
  constexpr size_t kStep = R < 4 ? R : 4;
  float means[R], scales[R];

  SumTerms<R>(
      args, [](size_t, VecLanes x, VecLanes acc) HWY_ATTR { return hn::Add(acc, x); }, means);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; r += kStep) {
    StoreRows<kStep>(hn::Div(LoadRows<kStep>(means + r), count), means + r);
  }
  VecLanes mean[R];
  ENCORE_UNROLL
  for (size_t r = 0; r < R; ++r) mean[r] = hn::Set(d, means[r]);
  SumTerms<R>(
      args,
      [&mean](size_t r, VecLanes x, VecLanes acc) HWY_ATTR {
        const VecLanes centred = hn::Sub(x, mean[r]);
        return hn::MulAdd(centred, centred, acc);
      },
      scales);
  ENCORE_UNROLL
  for (size_t r = 0; r < R; r += kStep) {
    const VecRows variance = hn::Div(LoadRows<kStep>(scales + r), count);
    const VecRows deviation = hn::Sqrt(hn::Add(variance, hn::Set(d_rows, args.epsilon)));
    StoreRows<kStep>(hn::Div(hn::Set(d_rows, 1.0f), deviation), scales + r);
  }
  if (args.weight != nullptr && args.bias != nullptr) {
    ScaleRows<R, true>(args, means, scales);
  } else {
    ScaleRows<R, false>(args, means, scales);
  }
}

void LayerNormRows(const float* x, size_t ldx, const float* weight, const float* bias,
                   double epsilon, float* y, size_t ldy, size_t rows, size_t cols) {
  const NormArgs args{x, ldx, weight, bias, static_cast<float>(epsilon), y, ldy, cols};
  size_t r = 0;
  if (kMoreRowsAtOnce > kRowsAtOnce && cols <= kMoreRowsCols) {
    for (; r + kMoreRowsAtOnce <= rows; r += kMoreRowsAtOnce) NormRows<kMoreRowsAtOnce>(args, r);
  }
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) NormRows<kRowsAtOnce>(args, r);
  for (; r < rows; ++r) NormRows<1>(args, r);
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
