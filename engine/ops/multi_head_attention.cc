// SPDX-License-Identifier: Apache-2.0
//
// Multi-head attention by itself, of public operations: three projections, attention over [B, H, S,
// head size] views of them, and the output projection. The encoder (engine/nn) does the same with
// weights packed once and no allocation.

#include <array>
#include <string>
#include <type_traits>
#include <utility>

#include "encore/ops.h"
#include "encore/tensor.h"
#include "engine/base/guarded.h"
#include "engine/ops/view_check.h"

namespace encore::inline v0_1 {
namespace {

using internal::CheckOutput;
using internal::CheckRank;
using internal::CheckShape;

// [S, D] as [1, S, D]; [B, S, D] as it is.
template <typename T>
TensorView<T> AsBatch(const TensorView<T>& view) {
  if (view.rank() == 3) return view;
  return TensorView<T>(view.data(), Shape(1, view.dim(0), view.dim(1)),
                       typename TensorView<T>::Strides{0, view.stride(0), view.stride(1)});
}

// A dense [B, S, d_model] as [B, H, S, head size]; nothing moves.
template <typename T>
TensorView<T> SplitHeads(const TensorView<T>& view, size_t heads) {
  const size_t size = view.dim(2) / heads;
  return TensorView<T>(view.data(), Shape(view.dim(0), heads, view.dim(1), size),
                       typename TensorView<T>::Strides{view.stride(0), static_cast<ptrdiff_t>(size),
                                                       view.stride(1), 1});
}

// Rows [row, row + count) of a matrix or vector.
ConstView Rows(const ConstView& view, size_t row, size_t count) {
  if (view.empty()) return {};
  const float* data = view.data() + static_cast<ptrdiff_t>(row) * view.stride(0);
  if (view.rank() == 1) return ConstView(data, Shape(count), view.strides());
  return ConstView(data, Shape(count, view.dim(1)), view.strides());
}

Status CheckInputs(ConstView query, ConstView key, ConstView value,
                   const MultiHeadAttentionWeights& w, MutableView out,
                   const AttentionOptions& options) {
  if (query.rank() != 2 && query.rank() != 3) {
    return InvalidArgument("query has shape " + query.shape().ToString() +
                           "; wanted [queries, d_model] or [B, queries, d_model]");
  }
  ENCORE_RETURN_IF_ERROR(CheckRank("query", query, query.rank()));
  ENCORE_RETURN_IF_ERROR(CheckRank("key", key, query.rank()));
  const size_t d = query.dim(query.rank() - 1);
  const size_t keys = key.dim(key.rank() - 2);
  if (w.num_heads == 0 || d == 0 || d % w.num_heads != 0) {
    return InvalidArgument("query has d_model " + std::to_string(d) + " and num_heads is " +
                           std::to_string(w.num_heads) +
                           "; wanted a d_model that num_heads divides");
  }
  const Shape kv = query.rank() == 2 ? Shape(keys, d) : Shape(query.dim(0), keys, d);
  ENCORE_RETURN_IF_ERROR(CheckShape("key", key, kv, "the batch and d_model of query, any keys"));
  ENCORE_RETURN_IF_ERROR(CheckShape("value", value, kv, "the shape of key"));
  ENCORE_RETURN_IF_ERROR(CheckShape("out", out, query.shape(), "the shape of query"));
  ENCORE_RETURN_IF_ERROR(CheckOutput("out", out));
  ENCORE_RETURN_IF_ERROR(
      CheckShape("in_proj_weight", w.in_proj_weight, Shape(3 * d, d), "3 d_model by d_model"));
  ENCORE_RETURN_IF_ERROR(
      CheckShape("out_proj_weight", w.out_proj_weight, Shape(d, d), "d_model by d_model"));
  if (!w.in_proj_bias.empty()) {
    ENCORE_RETURN_IF_ERROR(CheckShape("in_proj_bias", w.in_proj_bias, Shape(3 * d), "3 d_model"));
  }
  if (!w.out_proj_bias.empty()) {
    ENCORE_RETURN_IF_ERROR(CheckShape("out_proj_bias", w.out_proj_bias, Shape(d), "d_model"));
  }
  if (!options.weights.empty()) {
    const size_t queries = query.dim(query.rank() - 2);
    const Shape wanted = query.rank() == 2 ? Shape(w.num_heads, queries, keys)
                                           : Shape(query.dim(0), w.num_heads, queries, keys);
    ENCORE_RETURN_IF_ERROR(
        CheckShape("weights", options.weights, wanted, "(batch,) heads, queries, keys"));
  }
  return {};
}

// y = linear(x) over [B, S, d]: as one matrix of B S rows where both views' rows are evenly spaced,
// so that threads meet once and not once a sequence; else sequence by sequence.
Status ApplyToBatch(const PackedLinear& linear, ConstView x, MutableView y,
                    const Executor& executor) {
  const size_t batch = x.dim(0);
  const size_t rows = x.dim(1);
  const auto even = [&](const auto& view) {
    return batch <= 1 || view.stride(0) == static_cast<ptrdiff_t>(rows) * view.stride(1);
  };
  const auto flat = [&](const auto& view) {
    using View = std::remove_cvref_t<decltype(view)>;
    return View(view.data(), Shape(batch * rows, view.dim(2)),
                typename View::Strides{view.stride(1), view.stride(2)});
  };
  if (even(x) && even(y)) return linear.Apply(flat(x), flat(y), executor);
  for (size_t b = 0; b < batch; ++b) {
    ENCORE_RETURN_IF_ERROR(linear.Apply(x[b], y[b], executor));
  }
  return {};
}

// x [B, S, d] weight^T + bias, dense.
Result<Tensor> Project(ConstView x, ConstView weight, ConstView bias, const Executor& executor) {
  ENCORE_ASSIGN_OR_RETURN(const PackedLinear linear, PackedLinear::Create(weight, bias));
  ENCORE_ASSIGN_OR_RETURN(Tensor y, Tensor::Create(DType::kF32, x.shape()));
  ENCORE_RETURN_IF_ERROR(ApplyToBatch(linear, x, y.View<float>(), executor));
  return y;
}

}  // namespace

Status MultiHeadAttention(ConstView query, ConstView key, ConstView value,
                          const MultiHeadAttentionWeights& weights, MutableView out,
                          const AttentionOptions& options) {
  return internal::Guarded("multi-head attention", [&]() -> Status {
    ENCORE_RETURN_IF_ERROR(CheckInputs(query, key, value, weights, out, options));
    query = AsBatch(query);
    key = AsBatch(key);
    value = AsBatch(value);
    out = AsBatch(out);
    const size_t d = query.dim(2);
    const auto project = [&](ConstView x, size_t part) {
      return Project(x, Rows(weights.in_proj_weight, part * d, d),
                     Rows(weights.in_proj_bias, part * d, d), options.executor);
    };
    ENCORE_ASSIGN_OR_RETURN(const Tensor q, project(query, 0));
    ENCORE_ASSIGN_OR_RETURN(const Tensor k, project(key, 1));
    ENCORE_ASSIGN_OR_RETURN(const Tensor v, project(value, 2));
    ENCORE_ASSIGN_OR_RETURN(Tensor context, Tensor::Create(DType::kF32, query.shape()));
    // Before attention writes its weights, which an error must leave untouched.
    ENCORE_ASSIGN_OR_RETURN(const PackedLinear projection,
                            PackedLinear::Create(weights.out_proj_weight, weights.out_proj_bias));

    AttentionOptions inner = options;
    if (options.weights.rank() == 3) {
      const MutableView& w = options.weights;
      inner.weights = MutableView(w.data(), Shape(1, w.dim(0), w.dim(1), w.dim(2)),
                                  MutableView::Strides{0, w.stride(0), w.stride(1), w.stride(2)});
    }
    const size_t heads = weights.num_heads;
    const MutableView context_view = context.View<float>();
    ENCORE_RETURN_IF_ERROR(
        Attention(SplitHeads(q.View<float>(), heads), SplitHeads(k.View<float>(), heads),
                  SplitHeads(v.View<float>(), heads), SplitHeads(context_view, heads), inner));
    return ApplyToBatch(projection, context_view, out, options.executor);
  });
}

}  // namespace encore
