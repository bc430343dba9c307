// SPDX-License-Identifier: Apache-2.0
//
// The public matrix products of encore/ops.h: validation, and copies where rows are not contiguous.
// The product itself is in gemm.cc.

#include <memory>
#include <utility>

#include "encore/cpu.h"
#include "encore/ops.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/ops/gemm.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/packed_matrix.h"
#include "engine/ops/view_check.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1 {
namespace {

using internal::AlignedBuffer;
using internal::CheckedMul;
using internal::CheckNoOverlap;
using internal::CheckOutput;
using internal::CheckRank;
using internal::CheckShape;
using internal::ConstRows;
using internal::CopyMatrix;
using internal::HasPlainRows;
using internal::InputRows;
using internal::PackedMatrix;
using internal::RowStride;
using internal::WeightSource;

Result<AlignedBuffer<float>> AllocateLike(const std::string& what, const Shape& shape) {
  AlignedBuffer<float> buffer;
  size_t floats = 0;
  if (CheckedMul(shape[0], shape[1], &floats) && buffer.Allocate(floats)) return buffer;
  return internal::NoMemoryFor(what + " of shape " + shape.ToString());
}

// y = x b with b's bias; shapes are right.
Status Multiply(ConstView x, const PackedMatrix& packed, MutableView y, const Executor& executor) {
  const internal::PackedView& b = packed.view();
  const size_t m = x.dim(0);
  if (m == 0 || b.n == 0) return {};
  internal::GemmArgs args{};
  args.b = b;
  args.a = InputRows::Of(ConstRows{x.data(), RowStride(x)});
  args.c = {y.data(), RowStride(y)};

  AlignedBuffer<float> x_copy;
  if (!HasPlainRows(x)) {
    ENCORE_ASSIGN_OR_RETURN(x_copy, AllocateLike("a copy of an input", x.shape()));
    CopyMatrix(x, MutableView(x_copy.data(), x.shape()));
    args.a = InputRows::Of(ConstRows{x_copy.data(), b.k});
  }
  AlignedBuffer<float> y_copy;
  if (!HasPlainRows(y)) {
    ENCORE_ASSIGN_OR_RETURN(y_copy, AllocateLike("a copy of an output", y.shape()));
    args.c = {y_copy.data(), b.n};
  }

  ENCORE_RETURN_IF_ERROR(internal::RunTeam(
      executor, [&](internal::Team& team) { internal::Gemm(team, args, packed.blocking(), m); }));

  if (y_copy.data() != nullptr) CopyMatrix(ConstView(y_copy.data(), y.shape()), y);
  return {};
}

}  // namespace

Status MatMul(ConstView a, ConstView b, MutableView c, const MatMulOptions& options) {
  return internal::Guarded("a matrix product", [&]() -> Status {
    ENCORE_RETURN_IF_ERROR(CheckRank("a", a, 2));
    ENCORE_RETURN_IF_ERROR(CheckRank("b", b, 2));
    if (options.transpose_b == Transpose::kYes) b = b.Transposed();
    if (b.dim(0) != a.dim(1)) {
      return InvalidArgument("a has shape " + a.shape().ToString() + " and b" +
                             (options.transpose_b == Transpose::kYes ? ", transposed," : "") +
                             " has shape " + b.shape().ToString() +
                             "; wanted as many columns in a as rows in b");
    }
    ENCORE_RETURN_IF_ERROR(
        CheckShape("c", c, Shape(a.dim(0), b.dim(1)), "the rows of a and the columns of b"));
    ENCORE_RETURN_IF_ERROR(CheckOutput("c", c));
    if (!options.bias.empty()) {
      ENCORE_RETURN_IF_ERROR(CheckShape("bias", options.bias, Shape(b.dim(1)), "the columns of b"));
      ENCORE_RETURN_IF_ERROR(CheckNoOverlap("c", c, "bias", options.bias));
    }
    ENCORE_RETURN_IF_ERROR(CheckNoOverlap("c", c, "a", a));
    ENCORE_RETURN_IF_ERROR(CheckNoOverlap("c", c, "b", b));
    if (a.dim(0) == 0 || b.dim(1) == 0) return {};
    const Result<PackedMatrix> packed =
        PackedMatrix::Create(WeightSource::One(b.Transposed(), options.bias));
    if (!packed.ok()) {
      return internal::NoMemoryFor("packed b of shape " + b.shape().ToString());
    }
    return Multiply(a, *packed, c, options.executor);
  });
}

struct PackedLinear::Impl {
  PackedMatrix weights;
};

Result<PackedLinear> PackedLinear::Create(ConstView weight, ConstView bias) {
  return internal::Guarded("packed weights", [&]() -> Result<PackedLinear> {
    ENCORE_RETURN_IF_ERROR(CheckRank("weight", weight, 2));
    if (!bias.empty()) {
      ENCORE_RETURN_IF_ERROR(CheckShape("bias", bias, Shape(weight.dim(0)), "the rows of weight"));
    }
    ENCORE_ASSIGN_OR_RETURN(PackedMatrix packed,
                            PackedMatrix::Create(WeightSource::One(weight, bias)));
    PackedLinear linear;
    linear.impl_ = std::make_shared<const Impl>(Impl{std::move(packed)});
    return linear;
  });
}

Status PackedLinear::Apply(ConstView x, MutableView y, const Executor& executor) const {
  return internal::Guarded("a matrix product", [&]() -> Status {
    if (impl_ == nullptr)
      return InvalidArgument("this PackedLinear holds no weights; wanted one made by Create");
    const internal::PackedView& b = impl_->weights.view();
    ENCORE_RETURN_IF_ERROR(CheckRank("x", x, 2));
    ENCORE_RETURN_IF_ERROR(CheckShape("x", x, Shape(x.dim(0), b.k), "any rows by in_features"));
    ENCORE_RETURN_IF_ERROR(
        CheckShape("y", y, Shape(x.dim(0), b.n), "the rows of x by out_features"));
    ENCORE_RETURN_IF_ERROR(CheckOutput("y", y));
    ENCORE_RETURN_IF_ERROR(CheckNoOverlap("y", y, "x", x));
    return Multiply(x, impl_->weights, y, executor);
  });
}

size_t PackedLinear::in_features() const { return impl_ == nullptr ? 0 : impl_->weights.view().k; }
size_t PackedLinear::out_features() const { return impl_ == nullptr ? 0 : impl_->weights.view().n; }

}  // namespace encore
