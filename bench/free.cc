// SPDX-License-Identifier: Apache-2.0
//
// The functions on Highway's own mathematics, and the register tiles, which differ from the
// library's in nothing but their chains. For each SIMD target.

#include "bench/free.h"

#include <cstddef>
#include <utility>

#include "bench/elementwise.h"
#include "engine/kernels/fewer_avx3.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/free.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/dispatch.h"
#include "engine/kernels/gemm_tile-inl.h"
#include "hwy/highway.h"
#if __has_include("hwy/contrib/math/math-inl.h")
#include "hwy/contrib/math/math-inl.h"
#define ENCORE_BENCH_HIGHWAY_MATH 1
#else
#define ENCORE_BENCH_HIGHWAY_MATH 0
#endif

HWY_BEFORE_NAMESPACE();
namespace encore::bench::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

// y[i] = f(x[i]) in the loop of engine/kernels/elementwise-inl.h.
template <class F>
HWY_INLINE void Map(const float* x, float* y, size_t n, F f) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i + 2 * lanes <= n; i += 2 * lanes) {
    const V v0 = hn::LoadU(d, x + i);
    const V v1 = hn::LoadU(d, x + i + lanes);
    hn::StoreU(f(v0), d, y + i);
    hn::StoreU(f(v1), d, y + i + lanes);
  }
}

#if ENCORE_BENCH_HIGHWAY_MATH

void ExpArray(const float* x, float* y, size_t n) {
  Map(x, y, n, [](V v) HWY_ATTR { return hn::Exp(D(), v); });
}

// erf x = sign(x) (1 - (a1 t + .. + a5 t^5) e^(-x^2)), t = 1 / (1 + p |x|).
HWY_INLINE V Erf(V x) {
  const D d;
  const V one = hn::Set(d, 1.0f);
  const V t = hn::Div(one, hn::MulAdd(hn::Abs(x), hn::Set(d, 0.3275911f), one));
  V p = hn::MulAdd(hn::Set(d, 1.061405429f), t, hn::Set(d, -1.453152027f));
  p = hn::MulAdd(p, t, hn::Set(d, 1.421413741f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.284496736f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.254829592f));
  const V e = hn::Exp(d, hn::Neg(hn::Mul(x, x)));
  return hn::CopySign(hn::NegMulAdd(hn::Mul(p, t), e, one), x);
}

void GeluArray(const float* x, float* y, size_t n) {
  Map(x, y, n, [](V v) HWY_ATTR {
    const D d;
    const V half = hn::Mul(v, hn::Set(d, 0.5f));
    return hn::MulAdd(half, Erf(hn::Mul(v, hn::Set(d, 0.70710678f))), half);
  });
}

// Three passes over a row, cols a multiple of a vector.
void SoftmaxRows(const float* x, float* y, size_t rows, size_t cols) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  for (; rows != 0; --rows, x += cols, y += cols) {
    V largest = hn::LoadU(d, x);
    for (size_t c = lanes; c < cols; c += lanes) largest = hn::Max(largest, hn::LoadU(d, x + c));
    largest = hn::MaxOfLanes(d, largest);
    V sum = hn::Zero(d);
    for (size_t c = 0; c < cols; c += lanes) {
      const V p = hn::Exp(d, hn::Sub(hn::LoadU(d, x + c), largest));
      sum = hn::Add(sum, p);
      hn::StoreU(p, d, y + c);
    }
    const V factor = hn::Div(hn::Set(d, 1.0f), hn::SumOfLanes(d, sum));
    for (size_t c = 0; c < cols; c += lanes) {
      hn::StoreU(hn::Mul(hn::LoadU(d, y + c), factor), d, y + c);
    }
  }
}

#endif  // ENCORE_BENCH_HIGHWAY_MATH

// LayerNorm likewise.
void FreeNormRows(const float* x, const float* weight, const float* bias, float epsilon, float* y,
                  size_t rows, size_t cols) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V count = hn::Set(d, static_cast<float>(cols));
  for (; rows != 0; --rows, x += cols, y += cols) {
    V sum = hn::Zero(d);
    for (size_t c = 0; c < cols; c += lanes) sum = hn::Add(sum, hn::LoadU(d, x + c));
    const V mean = hn::Div(hn::SumOfLanes(d, sum), count);
    V squares = hn::Zero(d);
    for (size_t c = 0; c < cols; c += lanes) {
      const V centred = hn::Sub(hn::LoadU(d, x + c), mean);
      squares = hn::MulAdd(centred, centred, squares);
    }
    const V variance = hn::Div(hn::SumOfLanes(d, squares), count);
    const V scale = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Add(variance, hn::Set(d, epsilon))));
    for (size_t c = 0; c < cols; c += lanes) {
      const V normal = hn::Mul(hn::Sub(hn::LoadU(d, x + c), mean), scale);
      hn::StoreU(hn::MulAdd(normal, hn::LoadU(d, weight + c), hn::LoadU(d, bias + c)), d, y + c);
    }
  }
}

// ---- Products ----

using internal::GemmKernel;
using internal::GemmTile;
using internal::TilePrefetch;
using internal::WidthKernels;
using Tag = internal::HWY_NAMESPACE::GemmTagF32;

template <size_t kChains, size_t MR, size_t NV, TilePrefetch kPrefetch>
HWY_NOINLINE void RunFreeTile(const GemmTile& t) {
  const Tag d;
  constexpr size_t kLanes = hn::MaxLanes(Tag());
  internal::HWY_NAMESPACE::RowPointers<MR, float> a(reinterpret_cast<const float*>(t.in.a.data),
                                                    t.in.a.stride / sizeof(float));
  const float* HWY_RESTRICT b = static_cast<const float*>(t.in.b);
  const size_t ldb = t.in.ldb;
  [[maybe_unused]] const char* prefetch = t.in.prefetch;
  [[maybe_unused]] const size_t prefetch_step = t.in.prefetch_step;

  hn::Vec<Tag> acc[kChains][MR][NV];
  ENCORE_UNROLL
  for (size_t s = 0; s < kChains; ++s) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) {
        acc[s][i][j] =
            s == 0 ? hn::LoadU(d, t.in.init + i * t.in.ld_init + j * kLanes) : hn::Zero(d);
        ENCORE_PIN(acc[s][i][j]);
      }
    }
  }
  if (t.in.kc >= internal::HWY_NAMESPACE::kLongChain) {
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) internal::PrefetchWrite(t.out.c[j] + i * t.out.ldc);
    }
  }
  const auto step = [&](hn::Vec<Tag>(&sums)[MR][NV]) HWY_ATTR {
    hn::Vec<Tag> bk[NV];
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) bk[j] = hn::LoadU(d, b + j * kLanes);
    b += ldb;
    if constexpr (kPrefetch != internal::kNoLine) {
      constexpr size_t kLines = kPrefetch == internal::kOneLine
                                    ? 1
                                    : HWY_MAX(NV * kLanes * sizeof(float) / 64, size_t{1});
      ENCORE_UNROLL
      for (size_t line = 0; line < kLines; ++line) internal::PrefetchL2(prefetch + 64 * line);
      prefetch += prefetch_step;
    }
    ENCORE_UNROLL
    for (size_t i = 0; i < MR; ++i) {
      const hn::Vec<Tag> ai = hn::Set(d, a(i));
      ENCORE_UNROLL
      for (size_t j = 0; j < NV; ++j) sums[i][j] = hn::MulAdd(ai, bk[j], sums[i][j]);
    }
    a.Next();
  };
  ENCORE_NO_UNROLL
  for (size_t k = t.in.kc / kChains; k != 0; --k) {
    ENCORE_UNROLL
    for (size_t s = 0; s < kChains; ++s) step(acc[s]);
  }
  for (size_t k = t.in.kc % kChains; k != 0; --k) step(acc[0]);

  ENCORE_UNROLL
  for (size_t half = kChains / 2; half != 0; half /= 2) {
    ENCORE_UNROLL
    for (size_t s = 0; s < half; ++s) {
      ENCORE_UNROLL
      for (size_t i = 0; i < MR; ++i) {
        ENCORE_UNROLL
        for (size_t j = 0; j < NV; ++j) acc[s][i][j] = hn::Add(acc[s][i][j], acc[s + half][i][j]);
      }
    }
  }
  ENCORE_UNROLL
  for (size_t i = 0; i < MR; ++i) {
    ENCORE_UNROLL
    for (size_t j = 0; j < NV; ++j) hn::StoreU(acc[0][i][j], d, t.out.c[j] + i * t.out.ldc);
  }
}

// The tallest tile of NV vectors whose accumulators, with NV vectors of B and one of A, fit the
// registers: 32, or 16 of them (one less without FMA, for the product). 0 where not even one row
// does.
template <size_t kChains, size_t NV>
constexpr size_t MaxMr() {
  constexpr size_t kRegisters = ENCORE_32_REGISTERS ? 32 : HWY_NATIVE_FMA ? 16 : 15;
  return NV + 1 >= kRegisters ? 0 : (kRegisters - NV - 1) / (kChains * NV);
}

template <size_t kChains, size_t NV, size_t... I>
constexpr WidthKernels MakeWidth(std::index_sequence<I...>) {
  using internal::kAllLines, internal::kNoLine, internal::kOneLine;
  WidthKernels kernels{};
  kernels.nv = NV;
  kernels.column_bytes = sizeof(float);
  kernels.max_mr = sizeof...(I);
  ((kernels.tile[kNoLine][I + 1] = &RunFreeTile<kChains, I + 1, NV, kNoLine>), ...);
  ((kernels.tile[kOneLine][I + 1] = &RunFreeTile<kChains, I + 1, NV, kOneLine>), ...);
  ((kernels.tile[kAllLines][I + 1] = &RunFreeTile<kChains, I + 1, NV, kAllLines>), ...);
  return kernels;
}

template <size_t kChains, size_t NV>
void RunFree(GemmTile& slice, size_t rows) {
  static constexpr WidthKernels kWidth =
      MakeWidth<kChains, NV>(std::make_index_sequence<MaxMr<kChains, NV>()>());
  internal::RunSlice(kWidth, slice, rows);
}

template <size_t kChains, size_t NV>
constexpr void FillWidth(GemmKernel* kernel) {
  kernel->max_mr[NV] = MaxMr<kChains, NV>();
  kernel->run[NV] = kernel->max_mr[NV] != 0 ? &RunFree<kChains, NV> : nullptr;
}

template <size_t kChains>
GemmKernel MakeKernel() {
  GemmKernel kernel = internal::GetGemmKernelF32();  // for how it packs
  for (size_t nv = 0; nv <= GemmKernel::kMaxNv; ++nv) {
    kernel.max_mr[nv] = 0;
    for (size_t& panels : kernel.wide_panels[nv]) panels = 0;
  }
  FillWidth<kChains, 1>(&kernel);
  FillWidth<kChains, 2>(&kernel);
  return kernel;
}

const GemmKernel* TargetFreeKernel(size_t chains) {
  static const GemmKernel two = MakeKernel<2>();
  static const GemmKernel four = MakeKernel<4>();
  return chains == 2 ? &two : &four;
}

}  // namespace
}  // namespace encore::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace encore::bench {

#if ENCORE_BENCH_HIGHWAY_MATH

HWY_EXPORT(ExpArray);
HWY_EXPORT(GeluArray);
HWY_EXPORT(SoftmaxRows);

Status FreeExp(ConstView x, MutableView y) {
  ENCORE_DISPATCH(ExpArray)(x.data(), y.data(), x.dim(0));
  return Status();
}

Status FreeGelu(ConstView x, MutableView y) {
  ENCORE_DISPATCH(GeluArray)(x.data(), y.data(), x.dim(0));
  return Status();
}

Status FreeSoftmax(ConstView x, MutableView y) {
  ENCORE_DISPATCH(SoftmaxRows)(x.data(), y.data(), x.dim(0), x.dim(1));
  return Status();
}

#else

namespace {

Status NoMathematics() {
  return Status(ErrorCode::kUnsupported, "hwy/contrib/math was not found when this was built");
}

}  // namespace

Status FreeExp(ConstView, MutableView) { return NoMathematics(); }
Status FreeGelu(ConstView, MutableView) { return NoMathematics(); }
Status FreeSoftmax(ConstView, MutableView) { return NoMathematics(); }

#endif  // ENCORE_BENCH_HIGHWAY_MATH

HWY_EXPORT(FreeNormRows);

Status FreeLayerNorm(ConstView x, MutableView y) {
  const NormWeights& norm = GetNormWeights();
  ENCORE_DISPATCH(FreeNormRows)
  (x.data(), norm.weight.View<float>().data(), norm.bias.View<float>().data(),
   static_cast<float>(kNormEpsilon), y.data(), x.dim(0), x.dim(1));
  return Status();
}

HWY_EXPORT(TargetFreeKernel);

const internal::GemmKernel& FreeKernel(size_t chains) {
  return *ENCORE_DISPATCH(TargetFreeKernel)(chains);
}

}  // namespace encore::bench
#endif  // HWY_ONCE
