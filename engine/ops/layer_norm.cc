// SPDX-License-Identifier: Apache-2.0
//
// The LayerNorm operation of encore/ops.h, on the calling thread.

#include "engine/kernels/layer_norm.h"

#include <cmath>
#include <cstddef>
#include <new>
#include <string>

#include "encore/ops.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/number_text.h"
#include "engine/base/out_of_memory.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/row_blocks.h"
#include "engine/ops/view_check.h"

namespace encore {
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

}  // namespace

Status LayerNorm(ConstView x, ConstView weight, ConstView bias, double epsilon, MutableView y) try {
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
  const float* w = nullptr;
  const float* b = nullptr;
  if (!Contiguous(weight, weight_buffer, &w) || !Contiguous(bias, bias_buffer, &b)) {
    return Status(ErrorCode::kOutOfMemory,
                  "no memory for a copy of weight or bias of " + std::to_string(cols) + " floats");
  }
  const auto kernel = internal::GetLayerNormKernels().rows;
  return internal::ForRowBlocks(
      x, y, [=](const float* from, size_t ldx, float* to, size_t ldy, size_t rows) {
        kernel(from, ldx, w, b, epsilon, to, ldy, rows, cols);
      });
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

}  // namespace encore
