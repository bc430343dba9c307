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
#include "engine/base/number_text.h"
#include "engine/base/out_of_memory.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/softmax.h"
#include "engine/ops/attention.h"
#include "engine/ops/attention_check.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/view_check.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1 {
namespace {

using internal::AlignedBuffer;
using internal::CheckedAdd;
using internal::CheckedMul;
using internal::CheckedRoundUp;
using internal::CheckNoOverlap;
using internal::CheckOutput;
using internal::CheckRank;
using internal::CheckShape;
using internal::HasPlainRows;
using internal::kQueryBlock;
using internal::RowStride;

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

void CopyRows(ConstView from, float* to) {
  for (size_t row = 0; row < from.dim(0); ++row) {
    for (size_t c = 0; c < from.dim(1); ++c) to[row * from.dim(1) + c] = from(row, c);
  }
}

// What a call allocates: packed keys and values of every head, queries and outputs where the views'
// rows are not plain, and the threads' scratch.
struct Buffers {
  bool Allocate(const internal::PackedView& key_panels, const internal::PackedView& value_panels,
                const ConstView& q, bool plain_out, size_t heads, size_t threads, bool masked) {
    const size_t value_size = value_panels.n;
    const size_t rows = q.dim(q.rank() - 2);
    if (!IsAddressable(key_panels.n, key_panels.k) || !IsAddressable(key_panels.n, value_size) ||
        !IsAddressable(rows, key_panels.k) || !IsAddressable(rows, value_size)) {
      return false;
    }
    ld_out = internal::RoundUp(value_size, 16);
    keys = internal::RoundUp(key_panels.packed_bytes(), 64);
    values = internal::RoundUp(value_panels.packed_bytes(), 64);
    queries = HasPlainRows(q) ? 0 : internal::RoundUp(rows * key_panels.k * sizeof(float), 64);
    out = plain_out ? 0 : rows * ld_out * sizeof(float);
    scratch = internal::AttentionScratchFloats(key_panels.n, value_size, masked) * sizeof(float);
    size_t bytes = 0;
    size_t all_scratch = 0;
    if (!CheckedMul(keys + values + queries + out, heads, &bytes) ||
        !CheckedMul(scratch, threads, &all_scratch) || !CheckedAdd(bytes, all_scratch, &bytes) ||
        !memory.Allocate(bytes)) {
      return false;
    }
    num_heads = heads;
    return true;
  }

  std::byte* Keys(size_t head) { return memory.data() + head * keys; }
  std::byte* Values(size_t head) { return Keys(num_heads) + head * values; }
  float* Queries(size_t head) { return Floats(values_end() + head * queries); }
  float* Out(size_t head) { return Floats(queries_end() + head * out); }
  float* Scratch(int thread) {
    return Floats(queries_end() + num_heads * out + static_cast<size_t>(thread) * scratch);
  }

  size_t ld_out = 0;  // rows of out, in floats: whole vectors
  // Bytes of one head, and of one thread; 0 for what is not needed. Multiples of 64.
  size_t keys = 0;
  size_t values = 0;
  size_t queries = 0;
  size_t out = 0;
  size_t scratch = 0;
  size_t num_heads = 0;
  AlignedBuffer<std::byte> memory;

 private:
  size_t values_end() const { return num_heads * (keys + values); }
  size_t queries_end() const { return values_end() + num_heads * queries; }
  float* Floats(size_t offset) { return reinterpret_cast<float*>(memory.data() + offset); }
};

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
    return InvalidArgument("scale is " + internal::NumberText(options.scale) +
                           "; wanted a finite f32 number, or 0 for the default");
  }
  if (options.window == size_t{0}) return InvalidArgument("window is 0; wanted at least 1");
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

  const internal::GemmKernel& kernel = internal::GetGemmKernelF32();
  const size_t keys = k.dim(k.rank() - 2);
  const size_t value_size = v.dim(v.rank() - 1);
  const internal::PackedView key_panels = internal::KeyPanels(kernel, keys, head_size);
  const internal::PackedView value_panels = internal::ValuePanels(kernel, keys, value_size);
  const size_t blocks = internal::DivCeil(queries, kQueryBlock);
  // No thread beyond the tasks is given one.
  const size_t threads = std::min(static_cast<size_t>(options.executor.threads()), heads * blocks);
  Buffers buffers;
  if (!buffers.Allocate(key_panels, value_panels, q, HasPlainRows(out), heads, threads,
                        internal::HasMatrix(options.mask))) {
    return NoMemoryFor(k, v);
  }
  const internal::SoftmaxKernels& softmax = internal::GetSoftmaxKernels();
  internal::RunTeam(options.executor, [&](internal::Team& team) {
    // In here, under the default rounding mode.
    const float scale = static_cast<float>(
        options.scale != 0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(head_size)));
    team.ForEach(heads, [&](size_t i, int /*thread*/) {
      const ConstView k_i = MatrixAt(k, i);
      const ConstView v_i = MatrixAt(v, i);
      PackInto(key_panels, k_i.data(), k_i.stride(1), k_i.stride(0), buffers.Keys(i));
      PackInto(value_panels, v_i.data(), v_i.stride(0), v_i.stride(1), buffers.Values(i));
      if (buffers.queries != 0) CopyRows(MatrixAt(q, i), buffers.Queries(i));
    });
    team.ForEach(heads * blocks, [&](size_t task, int thread) {
      const size_t i = task / blocks;
      const size_t begin = task % blocks * kQueryBlock;
      const size_t end = std::min(begin + kQueryBlock, queries);
      const MutableView out_i = MatrixAt(out, i);
      internal::AttentionHead head{};
      head.softmax = &softmax;
      head.q = buffers.queries != 0
                   ? internal::ConstRows{buffers.Queries(i), head_size}
                   : internal::ConstRows{MatrixAt(q, i).data(), RowStride(MatrixAt(q, i))};
      head.keys = key_panels;
      head.keys.data = buffers.Keys(i);
      head.values = value_panels;
      head.values.data = buffers.Values(i);
      // Without columns there may be no memory to take steps in.
      head.out = {out_i.data(), value_size == 0 ? 0 : RowStride(out_i)};
      if (buffers.out != 0) head.out = {buffers.Out(i), buffers.ld_out};
      if (!options.weights.empty()) head.weights = MatrixAt(options.weights, i);
      head.scale = scale;
      head.mask = options.mask;
      head.window = options.window.value_or(internal::kNoWindow);
      internal::Attend(head, begin, end, buffers.Scratch(thread));
      if (buffers.out != 0) {
        for (size_t row = begin; row < end; ++row) {
          for (size_t c = 0; c < value_size; ++c) out_i(row, c) = head.out.row(row)[c];
        }
      }
    });
  });
  return {};
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

}  // namespace encore
