// SPDX-License-Identifier: Apache-2.0
//
// The elementwise operations of encore/ops.h: validation and strides around the kernels, on the
// calling thread.

#include "engine/kernels/elementwise.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "encore/ops.h"
#include "engine/base/guarded.h"
#include "engine/ops/axis_loop.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/view_check.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1 {
namespace {

using internal::AxisLoop;
using internal::ElementwiseKernels;

// Elements that pass through a buffer at a time where a view is not contiguous; 1 KiB, so that two
// buffers stay in L1.
constexpr size_t kBlock = 256;

// The axes of all views with the output's (the last view's) longest strides outermost: elements are
// independent, so any order will do, and this one makes the innermost run contiguous where it can
// be.
template <size_t N>
AxisLoop<N> LoopInMemoryOrder(const std::array<ConstView, N>& views) {
  const ConstView& out = views[N - 1];
  std::array<size_t, Shape::kMaxRank> order{};
  for (size_t i = 0; i < out.rank(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(out.rank()),
                   [&](size_t a, size_t b) {
                     return internal::Distance(out.stride(a)) > internal::Distance(out.stride(b));
                   });
  AxisLoop<N> loop;
  for (size_t i = 0; i < out.rank(); ++i) {
    typename AxisLoop<N>::Axis axis;
    axis.extent = out.dim(order[i]);
    for (size_t v = 0; v < N; ++v) axis.strides[v] = views[v].stride(order[i]);
    loop.Push(axis);
  }
  return loop;
}

// The n floats at p, `stride` apart: p itself where they are contiguous, else copied to the buffer.
const float* Gather(const float* p, ptrdiff_t stride, size_t n, float* buffer) {
  if (stride == 1 || n == 1) return p;
  for (size_t i = 0; i < n; ++i) buffer[i] = p[static_cast<ptrdiff_t>(i) * stride];
  return buffer;
}

void Scatter(const float* from, float* p, ptrdiff_t stride, size_t n) {
  for (size_t i = 0; i < n; ++i) p[static_cast<ptrdiff_t>(i) * stride] = from[i];
}

// Calls kernel(inputs, output, n) for runs that cover all elements; all views have y's shape.
template <size_t kInputs, class Kernel>
void ForRuns(const std::array<ConstView, kInputs>& inputs, const MutableView& y, Kernel kernel) {
  for (size_t i = 0; i < y.rank(); ++i) {
    if (y.dim(i) == 0) return;
  }
  std::array<ConstView, kInputs + 1> views;
  std::copy(inputs.begin(), inputs.end(), views.begin());
  views[kInputs] = y;
  AxisLoop<kInputs + 1> loop = LoopInMemoryOrder(views);
  const auto run = loop.Pop();

  // Results are the same under any modes of the caller's.
  const internal::FpEnvScope modes;
  loop.ForEach([&](const auto& offsets) {
    alignas(64) float in[kInputs][kBlock];
    alignas(64) float out[kBlock];
    const ptrdiff_t y_stride = run.strides[kInputs];
    bool contiguous = y_stride == 1 || run.extent == 1;
    for (size_t v = 0; v < kInputs; ++v) {
      contiguous = contiguous && (run.strides[v] == 1 || run.extent == 1);
    }
    const size_t step = contiguous ? run.extent : kBlock;
    for (size_t begin = 0; begin < run.extent; begin += step) {
      const size_t n = std::min(step, run.extent - begin);
      const ptrdiff_t at = static_cast<ptrdiff_t>(begin);
      std::array<const float*, kInputs> from;
      for (size_t v = 0; v < kInputs; ++v) {
        const float* p = inputs[v].data() + offsets[v] + at * run.strides[v];
        from[v] = Gather(p, run.strides[v], n, in[v]);
      }
      float* to = y.data() + offsets[kInputs] + at * y_stride;
      if (y_stride == 1 || n == 1) {
        kernel(from, to, n);
      } else {
        kernel(from, out, n);
        Scatter(out, to, y_stride, n);
      }
    }
  });
}

Status RunUnary(ElementwiseKernels::Unary ElementwiseKernels::*function, ConstView x,
                MutableView y) {
  return internal::Guarded("an elementwise operation", [&]() -> Status {
    ENCORE_RETURN_IF_ERROR(internal::CheckRank("x", x, x.rank()));
    ENCORE_RETURN_IF_ERROR(internal::CheckShape("y", y, x.shape(), "that of x"));
    ENCORE_RETURN_IF_ERROR(internal::CheckOutput("y", y));
    ENCORE_RETURN_IF_ERROR(internal::CheckInPlaceOrApart("y", y, "x", x));
    const ElementwiseKernels::Unary kernel = internal::GetElementwiseKernels().*function;
    ForRuns<1>({x}, y, [kernel](const auto& from, float* to, size_t n) { kernel(from[0], to, n); });
    return {};
  });
}

}  // namespace

Status Exp(ConstView x, MutableView y) { return RunUnary(&ElementwiseKernels::exp, x, y); }
Status Tanh(ConstView x, MutableView y) { return RunUnary(&ElementwiseKernels::tanh, x, y); }
Status Relu(ConstView x, MutableView y) { return RunUnary(&ElementwiseKernels::relu, x, y); }
Status Gelu(ConstView x, MutableView y) { return RunUnary(&ElementwiseKernels::gelu, x, y); }
Status GeluTanh(ConstView x, MutableView y) {
  return RunUnary(&ElementwiseKernels::gelu_tanh, x, y);
}
Status Silu(ConstView x, MutableView y) { return RunUnary(&ElementwiseKernels::silu, x, y); }

Status Add(ConstView a, ConstView b, MutableView c) {
  return internal::Guarded("a sum", [&]() -> Status {
    ENCORE_RETURN_IF_ERROR(internal::CheckRank("a", a, a.rank()));
    ENCORE_RETURN_IF_ERROR(internal::CheckShape("b", b, a.shape(), "that of a"));
    ENCORE_RETURN_IF_ERROR(internal::CheckShape("c", c, a.shape(), "that of a"));
    ENCORE_RETURN_IF_ERROR(internal::CheckOutput("c", c));
    ENCORE_RETURN_IF_ERROR(internal::CheckInPlaceOrApart("c", c, "a", a));
    ENCORE_RETURN_IF_ERROR(internal::CheckInPlaceOrApart("c", c, "b", b));
    const auto kernel = internal::GetElementwiseKernels().add;
    ForRuns<2>({a, b}, c, [kernel](const auto& from, float* to, size_t n) {
      kernel(from[0], from[1], to, n);
    });
    return {};
  });
}

}  // namespace encore
