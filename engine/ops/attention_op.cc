// SPDX-License-Identifier: Apache-2.0
//
// The public attention operations of encore/ops.h: validation, the loop over leading axes, scratch.
// One head's attention is in attention.cc.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "encore/ops.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/int_math.h"
#include "engine/base/out_of_memory.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/softmax.h"
#include "engine/ops/attention.h"
#include "engine/ops/attention_check.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/view_check.h"
#include "engine/platform/thread_team.h"

namespace encore {
namespace {

using internal::AlignedBuffer;
using internal::CheckedAdd;
using internal::CheckedMul;
using internal::CheckedRoundUp;
using internal::CheckNoOverlap;
using internal::CheckOutput;
using internal::CheckRank;
using internal::CheckShape;
using internal::kQueryBlock;

// The last two axes of the view at flat index i of its leading ones.
template <typename T>
TensorView<T> MatrixAt(TensorView<T> view, size_t i) {
  while (view.rank() > 2) {
    size_t inner = 1;
    for (size_t axis = 1; axis + 2 < view.rank(); ++axis) inner *= view.dim(axis);
    view = view[i / inner];
    i %= inner;
  }
  return view;
}

// [leading axes of q ..., rows, cols].
Shape WithLeadingAxes(const ConstView& q, size_t rows, size_t cols) {
  std::array<size_t, Shape::kMaxRank> extents{};
  const size_t leading = q.rank() - 2;
  for (size_t i = 0; i < leading; ++i) extents[i] = q.dim(i);
  extents[leading] = rows;
  extents[leading + 1] = cols;
  return *Shape::Create(extents.data(), q.rank());
}

Status NoMemoryFor(const ConstView& k, const ConstView& v) {
  return Status(ErrorCode::kOutOfMemory, "no memory for packed k of shape " + k.shape().ToString() +
                                             " and v of shape " + v.shape().ToString());
}

// Whether sums and products of a head's sizes stay far from overflow, rounded up as they will be.
bool IsAddressable(size_t rows, size_t cols) {
  size_t size = 0;
  return CheckedRoundUp(rows, kQueryBlock, &rows) && CheckedRoundUp(cols, kQueryBlock, &cols) &&
         CheckedMul(std::max(rows, kQueryBlock), std::max(cols, kQueryBlock), &size) &&
         CheckedMul(size, 64, &size);
}

Status CheckOverlaps(ConstView q, ConstView k, ConstView v, MutableView out,
                     const AttentionOptions& options) {
  const std::pair<const char*, ConstView> inputs[] = {
      {"q", q}, {"k", k}, {"v", v}, {"mask.additive", options.mask.additive}};
  for (const auto& [name, input] : inputs) {
    if (input.empty()) continue;
    ENCORE_RETURN_IF_ERROR(CheckNoOverlap("out", out, name, input));
    if (options.weights.empty()) continue;
    ENCORE_RETURN_IF_ERROR(CheckNoOverlap("weights", options.weights, name, input));
  }
  return options.weights.empty() ? Status()
                                 : CheckNoOverlap("out", out, "weights", options.weights);
}

Status CheckAttention(ConstView q, ConstView k, ConstView v, MutableView out,
                      const AttentionOptions& options) {
  if (q.rank() < 2)
    return InvalidArgument("q has shape " + q.shape().ToString() +
                           "; wanted [..., queries, head size]");
  if (k.rank() < 2)
    return InvalidArgument("k has shape " + k.shape().ToString() +
                           "; wanted [..., keys, head size]");
  if (v.rank() < 2)
    return InvalidArgument("v has shape " + v.shape().ToString() +
                           "; wanted [..., keys, value size]");
  ENCORE_RETURN_IF_ERROR(CheckRank("q", q, q.rank()));
  const size_t last = q.rank() - 1;
  const size_t queries = q.dim(last - 1);
  const size_t keys = k.dim(k.rank() - 2);
  const size_t value_size = v.dim(v.rank() - 1);
  ENCORE_RETURN_IF_ERROR(CheckShape("k", k, WithLeadingAxes(q, keys, q.dim(last)),
                                    "the leading axes of q, any keys, q's head size"));
  ENCORE_RETURN_IF_ERROR(CheckShape("v", v, WithLeadingAxes(q, keys, value_size),
                                    "the leading axes of q, k's keys, any value size"));
  ENCORE_RETURN_IF_ERROR(CheckShape("out", out, WithLeadingAxes(q, queries, value_size),
                                    "the leading axes and queries of q, v's value size"));
  ENCORE_RETURN_IF_ERROR(CheckOutput("out", out));
  if (!options.weights.empty()) {
    ENCORE_RETURN_IF_ERROR(CheckShape("weights", options.weights, WithLeadingAxes(q, queries, keys),
                                      "the leading axes and queries of q, k's keys"));
    ENCORE_RETURN_IF_ERROR(CheckOutput("weights", options.weights));
  }
  if (q.dim(last) == 0)
    return InvalidArgument("q has shape " + q.shape().ToString() +
                           "; wanted a head size of at least 1");
  if (!(std::abs(options.scale) <= std::numeric_limits<float>::max())) {
    return InvalidArgument("scale is " + std::to_string(options.scale) +
                           "; wanted a finite f32 number, or 0 for the default");
  }
  ENCORE_RETURN_IF_ERROR(internal::CheckMask(options.mask, queries, keys));
  return CheckOverlaps(q, k, v, out, options);
}

}  // namespace

Status Attention(ConstView q, ConstView k, ConstView v, MutableView out,
                 const AttentionOptions& options) try {
  ENCORE_RETURN_IF_ERROR(CheckAttention(q, k, v, out, options));
  const size_t queries = q.dim(q.rank() - 2);
  const size_t head_size = q.dim(q.rank() - 1);
  size_t heads = 1;
  for (size_t i = 0; i + 2 < q.rank(); ++i) heads *= q.dim(i);
  const bool no_output = v.dim(v.rank() - 1) == 0 && options.weights.empty();
  if (heads == 0 || queries == 0 || no_output) return {};

  internal::PackedHead layout{};
  layout.kernel = &internal::GetGemmKernelF32();
  layout.keys = k.dim(k.rank() - 2);
  layout.head_size = head_size;
  layout.value_size = v.dim(v.rank() - 1);
  if (!IsAddressable(layout.keys, head_size) || !IsAddressable(layout.keys, layout.value_size)) {
    return NoMemoryFor(k, v);
  }
  const internal::SoftmaxKernels& softmax = internal::GetSoftmaxKernels();
  const size_t lanes = static_cast<size_t>(options.executor.lanes());
  const size_t scratch_floats = internal::AttentionScratchFloats(
      layout.keys, head_size, layout.value_size, internal::HasMatrix(options.mask));
  // All heads' packed keys, then values, then the lanes' scratch.
  size_t floats = 0;
  size_t all_scratch = 0;
  const size_t keys_floats = internal::RoundUp(layout.packed_keys_floats(), 16);
  const size_t values_floats = internal::RoundUp(layout.packed_values_floats(), 16);
  AlignedBuffer<float> buffer;
  if (!CheckedMul(keys_floats + values_floats, heads, &floats) ||
      !CheckedMul(scratch_floats, lanes, &all_scratch) ||
      !CheckedAdd(floats, all_scratch, &floats) || !buffer.Allocate(floats)) {
    return NoMemoryFor(k, v);
  }
  float* scratch = buffer.data() + heads * (keys_floats + values_floats);
  const auto packed_head = [&](size_t i) {
    internal::PackedHead packed = layout;
    packed.packed_keys = buffer.data() + i * keys_floats;
    packed.packed_values = buffer.data() + heads * keys_floats + i * values_floats;
    return packed;
  };

  const size_t blocks = internal::DivCeil(queries, internal::kQueryBlock);
  internal::RunTeam(options.executor, [&](internal::Team& team) {
    // In here, under the default rounding mode.
    const float scale = static_cast<float>(
        options.scale != 0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(head_size)));
    team.ForEach(heads, [&](size_t i, int /*lane*/) {
      internal::PackHead(packed_head(i), MatrixAt(k, i), MatrixAt(v, i),
                         buffer.data() + i * keys_floats,
                         buffer.data() + heads * keys_floats + i * values_floats);
    });
    team.ForEach(heads * blocks, [&](size_t task, int lane) {
      const size_t i = task / blocks;
      internal::AttentionHead head{};
      head.q = MatrixAt(q, i);
      head.packed = packed_head(i);
      head.softmax = &softmax;
      head.out = MatrixAt(out, i);
      if (!options.weights.empty()) head.weights = MatrixAt(options.weights, i);
      head.scale = scale;
      head.mask = &options.mask;
      internal::AttendBlock(head, task % blocks,
                            scratch + static_cast<size_t>(lane) * scratch_floats);
    });
  });
  return {};
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

}  // namespace encore
