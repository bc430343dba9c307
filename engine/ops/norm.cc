// SPDX-License-Identifier: Apache-2.0
//
// LayerNorm and RMSNorm of encore/ops.h, on the calling thread.

#include "engine/kernels/norm.h"

#include <cmath>
#include <cstddef>
#include <string>

#include "encore/ops.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/guarded.h"
#include "engine/base/number_text.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/row_blocks.h"
#include "engine/ops/view_check.h"

namespace encore::inline v0_1 {
namespace {

Status CheckParameter(const char* name, const ConstView& parameter, size_t cols,
                      const MutableView& y) {
  if (parameter.empty()) return {};
  ENCORE_RETURN_IF_ERROR(
      internal::CheckShape(name, parameter, Shape(cols), "the last extent of x"));
  return internal::CheckNoOverlap("y", y, name, parameter);
}

// A parameter as the kernel wants it, contiguous or null; copied to `buffer` if need be. False
// without memory.
bool Contiguous(const ConstView& parameter, internal::AlignedBuffer<float>& buffer,
                const float** out) {
  *out = parameter.data();
  if (parameter.empty() || parameter.dim(0) <= 1 || parameter.stride(0) == 1) return true;
  if (!buffer.Allocate(parameter.dim(0))) return false;
  for (size_t i = 0; i < parameter.dim(0); ++i) buffer.data()[i] = parameter(i);
  *out = buffer.data();
  return true;
}

// Either of them.
Status Norm(void (*kernel)(const internal::NormArgs&), const ConstView& x, const ConstView& weight,
            const ConstView& bias, double epsilon, const MutableView& y) {
  return internal::Guarded("a norm", [&]() -> Status {
    ENCORE_RETURN_IF_ERROR(internal::CheckRowViews(x, y));
    const size_t cols = x.dim(x.rank() - 1);
    ENCORE_RETURN_IF_ERROR(CheckParameter("weight", weight, cols, y));
    ENCORE_RETURN_IF_ERROR(CheckParameter("bias", bias, cols, y));
    if (!(epsilon >= 0 && std::isfinite(epsilon))) {
      return InvalidArgument("epsilon is " + internal::NumberText(epsilon) +
                             "; wanted a finite number of at least 0");
    }
    internal::AlignedBuffer<float> weight_buffer;
    internal::AlignedBuffer<float> bias_buffer;
    internal::NormArgs args{};
    args.epsilon = epsilon;
    args.cols = cols;
    if (!Contiguous(weight, weight_buffer, &args.weight) ||
        !Contiguous(bias, bias_buffer, &args.bias)) {
      return internal::NoMemoryFor("a copy of weight or bias of " + std::to_string(cols) +
                                   " floats");
    }
    return internal::ForRowBlocks(
        x, y, [&](const float* from, size_t ldx, float* to, size_t ldy, size_t rows) {
          args.x = from;
          args.ldx = ldx;
          args.y = to;
          args.ldy = ldy;
          args.rows = rows;
          kernel(args);
        });
  });
}

}  // namespace

Status LayerNorm(ConstView x, ConstView weight, ConstView bias, double epsilon, MutableView y) {
  return Norm(internal::GetNormKernels().layer_norm, x, weight, bias, epsilon, y);
}

Status RmsNorm(ConstView x, ConstView weight, double epsilon, MutableView y) {
  return Norm(internal::GetNormKernels().rms_norm, x, weight, {}, epsilon, y);
}

}  // namespace encore
