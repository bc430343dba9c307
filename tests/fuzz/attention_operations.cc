// SPDX-License-Identifier: Apache-2.0
//
// Calls of Attention and MultiHeadAttention for the fuzz target `operations`: each head, or each
// sequence, has the bits that it has by itself, and lies near the exact result.

#include <cmath>
#include <limits>
#include <vector>

#include "reference/bounded.h"
#include "reference/multi_head_attention.h"
#include "tests/fuzz/operations.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// Masks [queries, keys] of any layout, each given or not.
class DrawnMask {
 public:
  DrawnMask(OperationDraw& run, size_t queries, size_t keys) {
    mask_.causal = run.draw.Chance(3);
    if (queries == 0 || keys == 0) return;
    if (run.draw.Chance(3)) {
      const Numbers kind = run.draw.Chance(4) ? run.kind : Numbers::kTame;
      additive_ = DrawnView<float>(run.draw, Shape(queries, keys), Layout::kInput);
      for (float& number : additive_.memory()) {
        number = run.source.Bits() % 3 == 0 ? kMinusInf : run.source.Next(kind);
      }
      tame_ = IsTame(kind);
      mask_.additive = additive_.view();
    }
    if (run.draw.Chance(3)) {
      blocked_ = DrawnView<bool>(run.draw, Shape(queries, keys), Layout::kInput);
      for (bool& flag : blocked_.memory()) flag = run.source.Bits() % 3 == 0;
      mask_.blocked = blocked_.view();
    }
  }
  const AttentionMask& mask() const { return mask_; }
  bool tame() const { return tame_; }

 private:
  DrawnView<float> additive_;
  DrawnView<bool> blocked_;
  AttentionMask mask_;
  bool tame_ = true;
};

double DrawScale(Draw& draw) {
  constexpr double kScales[] = {0, 1, -1, 0.1, 1e-30, 1e-45, 1e30, 3e38};
  return kScales[draw.Chance(2) ? 0 : draw.Between(0, 7)];
}

// A dense copy of a matrix; never null.
class DenseMatrix {
 public:
  explicit DenseMatrix(const ConstView& view) : values_(Dense(view)), shape_(view.shape()) {
    values_.push_back(0);
  }
  ConstView view() const { return {values_.data(), shape_}; }

 private:
  std::vector<float> values_;
  Shape shape_;
};

// A result of a call of its own.
class DenseResult {
 public:
  explicit DenseResult(const Shape& shape) : values_(*shape.NumElements() + 1), shape_(shape) {}
  MutableView view() { return {values_.data(), shape_}; }
  std::span<const float> values() const { return std::span(values_).first(values_.size() - 1); }

 private:
  std::vector<float> values_;
  Shape shape_;
};

// One head by itself, inline, on a target with the same bits.
void CheckHead(OperationDraw& run, const ConstView& q, const ConstView& k, const ConstView& v,
               const ConstView& out, const ConstView& weights, const AttentionOptions& drawn,
               bool near) {
  const DenseMatrix one_q(q), one_k(k), one_v(v);
  DenseResult one_out(out.shape());
  DenseResult one_weights(Shape(q.dim(0), k.dim(0)));
  AttentionOptions options = drawn;
  options.executor = {};
  options.weights = one_weights.view();
  CheckTaken(Attention(one_q.view(), one_k.view(), one_v.view(), one_out.view(), options));
  CheckSame(Dense(out), one_out.values(), "attention");
  if (!weights.empty()) CheckSame(Dense(weights), one_weights.values(), "attention weights");
  if (!near || !run.target.has_fma()) return;
  const double scale = options.scale != 0 ? options.scale : reference::DefaultScale(q.dim(1));
  reference::Bounded exact_weights(q.dim(0), k.dim(0));
  const auto exact = reference::BoundedAttention(one_q.view(), one_k.view(), one_v.view(), scale,
                                                 options.mask, &exact_weights);
  CheckBound(one_out.values(), exact, "attention");
  CheckBound(one_weights.values(), exact_weights, "attention weights");
}

template <typename T>
TensorView<T> At(const TensorView<T>& view, size_t b, size_t h) {
  if (view.empty() || view.rank() == 2) return view;
  return view.rank() == 3 ? view[h] : view[b][h];
}

}  // namespace

void RunAttention(OperationDraw& run) {
  Draw& draw = run.draw;
  const size_t leading = draw.Between(0, 2);
  const size_t batch = leading == 2 ? draw.Between(0, 2) : 1;
  const size_t heads = leading == 0 ? 1 : draw.Between(0, 3);
  const size_t queries = DrawExtent(draw, 12);
  // Beyond a tile of 512 keys now and then.
  const size_t keys = draw.Chance(64) ? 500 + draw.Between(0, 30) : DrawExtent(draw, 12);
  const size_t size = 1 + DrawExtent(draw, 8);
  const size_t value_size = DrawExtent(draw, 8);
  const auto shape = [&](size_t rows, size_t cols) {
    if (leading == 0) return Shape(rows, cols);
    return leading == 1 ? Shape(heads, rows, cols) : Shape(batch, heads, rows, cols);
  };
  const DrawnInput q = run.Input(shape(queries, size));
  const DrawnInput k = run.Input(shape(keys, size));
  const DrawnInput v = run.Input(shape(keys, value_size));
  const DrawnOutput out(draw, shape(queries, value_size));
  const DrawnOutput weights(draw, shape(queries, keys));
  const DrawnMask mask(run, queries, keys);
  AttentionOptions options{.mask = mask.mask(),
                           .scale = DrawScale(draw),
                           .weights = draw.Chance(3) ? weights.view() : MutableView(),
                           .executor = DrawExecutor(draw)};
  if (draw.Chance(3)) options.window = draw.Chance(8) ? SIZE_MAX : draw.Between(1, 20);
  if (draw.Chance(8)) {
    ConstView views[] = {q.view(), k.view(), v.view()};
    MutableView to = out.view();
    switch (draw.Between(0, 5)) {
      case 3:
        to = Spoiled(draw, to);
        break;
      case 4:
        options.scale = draw.Chance(2) ? std::numeric_limits<double>::quiet_NaN() : 1e39;
        break;
      case 5:
        options.window = 0;
        break;
      default: {
        ConstView& view = views[draw.Between(0, 2)];
        view = Spoiled(draw, view);
        break;
      }
    }
    CheckRefused(Attention(views[0], views[1], views[2], to, options), out);
    return weights.CheckUntouched();
  }
  CheckTaken(Attention(q.view(), k.view(), v.view(), out.view(), options));
  out.CheckRest();
  weights.CheckRest();
  if (queries == 0 || value_size == 0) return;
  const bool near = IsTame(run.kind) && mask.tame() && !options.window &&
                    std::fabs(options.scale) <= 1 && keys < 100;
  run.target.UseTwin(draw);
  for (size_t b = 0; b < batch; ++b) {
    for (size_t h = 0; h < heads; ++h) {
      CheckHead(run, At(ConstView(q.view()), b, h), At(ConstView(k.view()), b, h),
                At(ConstView(v.view()), b, h), At(ConstView(out.view()), b, h),
                At(ConstView(options.weights), b, h), options, near);
    }
  }
}

void RunMultiHeadAttention(OperationDraw& run) {
  Draw& draw = run.draw;
  const size_t heads = draw.Between(1, 4);
  const size_t d = heads * draw.Between(1, 5);
  const bool batched = draw.Chance(2);
  const size_t batch = batched ? draw.Between(0, 3) : 1;
  const size_t queries = DrawExtent(draw, 6);
  const size_t keys = DrawExtent(draw, 6);
  const auto shape = [&](size_t rows) { return batched ? Shape(batch, rows, d) : Shape(rows, d); };
  const DrawnInput query = run.Input(shape(queries));
  const DrawnInput key = run.Input(shape(keys));
  const DrawnInput value = run.Input(shape(keys));
  const DrawnInput in_weight = run.Input(Shape(3 * d, d));
  const DrawnInput in_bias = run.Input(Shape(3 * d));
  const DrawnInput out_weight = run.Input(Shape(d, d));
  const DrawnInput out_bias = run.Input(Shape(d));
  const DrawnOutput out(draw, shape(queries));
  const DrawnOutput weights(
      draw, batched ? Shape(batch, heads, queries, keys) : Shape(heads, queries, keys));
  const DrawnMask mask(run, queries, keys);
  MultiHeadAttentionWeights w{heads, in_weight.view(), {}, out_weight.view(), {}};
  if (draw.Chance(2)) w.in_proj_bias = in_bias.view();
  if (draw.Chance(2)) w.out_proj_bias = out_bias.view();
  const AttentionOptions options{.mask = mask.mask(),
                                 .weights = draw.Chance(3) ? weights.view() : MutableView(),
                                 .executor = DrawExecutor(draw)};
  if (draw.Chance(8)) {
    ConstView views[] = {query.view(), key.view(), value.view(), w.in_proj_weight,
                         w.out_proj_weight};
    MutableView to = out.view();
    const size_t which = draw.Between(0, 6);
    if (which < 5) views[which] = Spoiled(draw, views[which]);
    if (which == 5) to = Spoiled(draw, to);
    if (which == 6) w.num_heads = draw.Chance(2) ? 0 : d + 1;
    w.in_proj_weight = views[3];
    w.out_proj_weight = views[4];
    CheckRefused(MultiHeadAttention(views[0], views[1], views[2], w, to, options), out);
    return weights.CheckUntouched();
  }
  CheckTaken(MultiHeadAttention(query.view(), key.view(), value.view(), w, out.view(), options));
  out.CheckRest();
  weights.CheckRest();
  if (queries == 0 || batch == 0) return;
  // One sequence by itself, inline, on a target with the same bits.
  run.target.UseTwin(draw);
  const size_t b = draw.Between(0, batch - 1);
  const auto of = [&](const DrawnInput& view) {
    return DenseMatrix(batched ? ConstView(view.view())[b] : ConstView(view.view()));
  };
  const DenseMatrix one_query = of(query), one_key = of(key), one_value = of(value);
  DenseResult one_out(Shape(queries, d));
  CheckTaken(MultiHeadAttention(one_query.view(), one_key.view(), one_value.view(), w,
                                one_out.view(), {.mask = mask.mask()}));
  CheckSame(Dense(batched ? ConstView(out.view())[b] : ConstView(out.view())), one_out.values(),
            "multi-head attention");
  const bool folded = in_weight.folded() || out_weight.folded() || query.folded() || key.folded();
  if (run.kind != Numbers::kTame || !mask.tame() || folded || !run.target.has_fma()) return;
  using Exact = reference::Matrix<reference::Rounded>;
  std::vector<Exact> ignored;
  const Exact exact = reference::MultiHeadAttention(
      Exact(one_query.view()), Exact(one_key.view()), Exact(one_value.view()), w,
      reference::DefaultScale(d / heads), mask.mask(), {}, &ignored);
  for (size_t i = 0; i < exact.data.size(); ++i) {
    const double error = std::fabs(static_cast<double>(one_out.values()[i]) - exact.data[i].value);
    ENCORE_FUZZ_CHECK(error <= 4 * exact.data[i].Bound() + 1e-30,
                      "multi-head attention is " + std::to_string(error) + " off");
  }
}

}  // namespace encore::fuzz
