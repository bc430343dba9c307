// SPDX-License-Identifier: Apache-2.0
//
// The public attention operations of encore/ops.h: validation, the loop over leading axes, scratch.
// One head's attention is in attention.cc.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "encore/ops.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/number_text.h"
#include "engine/kernels/gemm_kernel.h"
#include "engine/kernels/softmax.h"
#include "engine/ops/attention.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/view_check.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1 {
namespace {

using internal::AlignedBuffer;
using internal::CheckedMul;
using internal::CheckedRoundUp;
using internal::CheckNoOverlap;
using internal::CheckOutput;
using internal::CheckRank;
using internal::CheckShape;
using internal::CopyMatrix;
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

// Whether sums and products of a head's sizes stay far from overflow, rounded up as they will be.
bool IsAddressable(size_t rows, size_t cols) {
  size_t size = 0;
  return CheckedRoundUp(rows, kQueryBlock, &rows) && CheckedRoundUp(cols, kQueryBlock, &cols) &&
         CheckedMul(std::max(rows, kQueryBlock), std::max(cols, kQueryBlock), &size) &&
         CheckedMul(size, 64, &size);
}

// As many pieces of equal size as there are heads or threads, each from a cache line on.
template <typename T>
class Pieces {
 public:
  [[nodiscard]] bool Allocate(size_t count, size_t size) {
    size_t all = 0;
    return CheckedRoundUp(size, internal::kMemoryAlignment / sizeof(T), &step_) &&
           CheckedMul(step_, count, &all) && memory_.Allocate(all);
  }
  bool empty() const { return memory_.data() == nullptr; }
  T* operator[](size_t i) { return memory_.data() + i * step_; }

 private:
  AlignedBuffer<T> memory_;
  size_t step_ = 0;
};

// What a call allocates. Queries and outputs only where the views' rows are not plain.
struct Buffers {
  bool Allocate(const internal::PackedView& key_panels, const internal::PackedView& value_panels,
                const ConstView& q, bool plain_out, size_t heads, size_t threads, bool masked) {
    const size_t value_size = value_panels.n;
    const size_t rows = q.dim(q.rank() - 2);
    ld_out = internal::RoundUp(value_size, 16);
    return IsAddressable(key_panels.n, key_panels.k) && IsAddressable(key_panels.n, value_size) &&
           IsAddressable(rows, key_panels.k) && IsAddressable(rows, value_size) &&
           keys.Allocate(heads, key_panels.packed_bytes()) &&
           values.Allocate(heads, value_panels.packed_bytes()) &&
           (HasPlainRows(q) || queries.Allocate(heads, rows * key_panels.k)) &&
           (plain_out || out.Allocate(heads, rows * ld_out)) &&
           scratch.Allocate(threads,
                            internal::AttentionScratchFloats(key_panels.n, value_size, masked));
  }

  Pieces<std::byte> keys;    // packed, of each head
  Pieces<std::byte> values;  // likewise
  Pieces<float> queries;     // [queries, head size] of each head
  Pieces<float> out;         // [queries, ld_out] of each head
  size_t ld_out = 0;         // whole vectors
  Pieces<float> scratch;     // of each thread
};

// Matrices of the mask, where given, are exactly [queries, keys].
Status CheckMask(const AttentionMask& mask, size_t queries, size_t keys) {
  if (!mask.blocked.empty()) {
    ENCORE_RETURN_IF_ERROR(
        CheckShape("mask.blocked", mask.blocked, Shape(queries, keys), "queries by keys"));
  }
  return mask.additive.empty()
             ? Status()
             : CheckShape("mask.additive", mask.additive, Shape(queries, keys), "queries by keys");
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
  const std::tuple<const char*, ConstView, const char*> matrices[] = {
      {"q", q, "queries, head size"}, {"k", k, "keys, head size"}, {"v", v, "keys, value size"}};
  for (const auto& [name, view, axes] : matrices) {
    if (view.rank() >= 2) continue;
    return InvalidArgument(std::string(name) + " has shape " + view.shape().ToString() +
                           "; wanted [..., " + axes + "]");
  }
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
  ENCORE_RETURN_IF_ERROR(CheckMask(options.mask, queries, keys));
  return CheckOverlaps(q, k, v, out, options);
}

}  // namespace

Status Attention(ConstView q, ConstView k, ConstView v, MutableView out,
                 const AttentionOptions& options) {
  return internal::Guarded("attention", [&]() -> Status {
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
    const size_t threads =
        std::min(static_cast<size_t>(options.executor.threads()), heads * blocks);
    Buffers buffers;
    if (!buffers.Allocate(key_panels, value_panels, q, HasPlainRows(out), heads, threads,
                          internal::HasMatrix(options.mask))) {
      return internal::NoMemoryFor("packed k of shape " + k.shape().ToString() +
                                   " and v of shape " + v.shape().ToString());
    }
    const internal::SoftmaxKernels& softmax = internal::GetSoftmaxKernels();
    ENCORE_RETURN_IF_ERROR(internal::RunTeam(options.executor, [&](internal::Team& team) {
      // In here, under the default rounding mode.
      const float scale = static_cast<float>(
          options.scale != 0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(head_size)));
      team.ForEach(heads, [&](size_t i, int /*thread*/) {
        const ConstView k_i = MatrixAt(k, i);
        const ConstView v_i = MatrixAt(v, i);
        PackInto(key_panels, k_i.data(), k_i.stride(1), k_i.stride(0), buffers.keys[i]);
        PackInto(value_panels, v_i.data(), v_i.stride(0), v_i.stride(1), buffers.values[i]);
        if (!buffers.queries.empty())
          CopyMatrix(MatrixAt(q, i), MutableView(buffers.queries[i], Shape(queries, head_size)));
      });
      team.ForEach(heads * blocks, [&](size_t task, int thread) {
        const size_t i = task / blocks;
        const size_t begin = task % blocks * kQueryBlock;
        const size_t end = std::min(begin + kQueryBlock, queries);
        const MutableView out_i = MatrixAt(out, i);
        internal::AttentionHead head{};
        head.softmax = &softmax;
        head.q = !buffers.queries.empty()
                     ? internal::ConstRows{buffers.queries[i], head_size}
                     : internal::ConstRows{MatrixAt(q, i).data(), RowStride(MatrixAt(q, i))};
        head.keys = key_panels;
        head.keys.data = buffers.keys[i];
        head.values = value_panels;
        head.values.data = buffers.values[i];
        // Without columns there may be no memory to walk.
        head.out = {out_i.data(), value_size == 0 ? 0 : RowStride(out_i)};
        if (!buffers.out.empty()) head.out = {buffers.out[i], buffers.ld_out};
        if (!options.weights.empty()) head.weights = MatrixAt(options.weights, i);
        head.scale = scale;
        head.mask = options.mask;
        head.window = options.window.value_or(internal::kNoWindow);
        internal::Attend(head, begin, end, buffers.scratch[static_cast<size_t>(thread)]);
        if (!buffers.out.empty()) {
          for (size_t row = begin; row < end; ++row) {
            for (size_t c = 0; c < value_size; ++c) out_i(row, c) = head.out.row(row)[c];
          }
        }
      });
    }));
    return {};
  });
}

}  // namespace encore
