// SPDX-License-Identifier: Apache-2.0
//
// The attention of an encoder layer over one sequence in double precision, with every switch of
// LayerConfig that it has.

#ifndef ENCORE_REFERENCE_SELF_ATTENTION_H_
#define ENCORE_REFERENCE_SELF_ATTENTION_H_

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "encore/encoder.h"
#include "reference/attention.h"
#include "reference/linear.h"
#include "reference/norm.h"
#include "reference/positions.h"
#include "reference/rotary.h"

namespace encore::reference {

// [S, (H + 2 G) D]: queries, keys and values of all heads side by side.
template <typename T>
Matrix<T> Projections(const Matrix<T>& x, const EncoderLayerWeights& w) {
  if (!w.in_proj.weight.empty()) return Linear(x, w.in_proj.weight, w.in_proj.bias);
  const Matrix<T> q = Linear(x, w.q_proj.weight, w.q_proj.bias);
  const Matrix<T> k = Linear(x, w.k_proj.weight, w.k_proj.bias);
  const Matrix<T> v = Linear(x, w.v_proj.weight, w.v_proj.bias);
  Matrix<T> all(x.rows, q.cols + k.cols + v.cols);
  SetColumns(all, 0, q);
  SetColumns(all, q.cols, k);
  SetColumns(all, q.cols + k.cols, v);
  return all;
}

// A head of q or k [S, D] after its norm and its rotation.
template <typename T>
Matrix<T> Prepared(const LayerConfig& c, Matrix<T> head, const WeightView& norm_weight,
                   const WeightView& norm_bias) {
  head = Norm(c.qk_norm, std::move(head), norm_weight, norm_bias);
  if (!c.rotary) return head;
  for (size_t i = 0; i < head.rows; ++i) {
    const bool has_place = !c.rotary->grid || i >= c.rotary->grid->before;
    if (!has_place) continue;
    Rotate(&head(i, 0), c.rotary->interleaved, 1, RotaryAngles(*c.rotary, i, head.cols),
           c.rotary->magnitude);
  }
  return head;
}

// What positions add to the score of query i and key j.
template <typename T>
Matrix<T> PositionBias(const LayerConfig& c, const EncoderLayerWeights& w, size_t head,
                       size_t tokens) {
  if (!c.alibi && !c.buckets) return {};
  Matrix<T> bias(tokens, tokens);
  const Matrix<T> table = c.buckets ? Numbers<T>(w.position_bias) : Matrix<T>();
  for (size_t i = 0; i < tokens; ++i) {
    for (size_t j = 0; j < tokens; ++j) {
      const ptrdiff_t distance = static_cast<ptrdiff_t>(j) - static_cast<ptrdiff_t>(i);
      if (c.buckets) {
        bias(i, j) = table(Bucket(*c.buckets, distance), head);
      } else {
        const double slope = AlibiSlope(*c.alibi, head, c.num_heads);
        bias(i, j) = Apply(T(slope), -slope, 0, 0) * T(static_cast<double>(std::abs(distance)));
      }
    }
  }
  return bias;
}

// Relative embeddings as keys and as queries of all heads, [rows, G D] and [rows, H D].
template <typename T>
struct RelativeTables {
  Matrix<T> keys;
  Matrix<T> queries;
};
template <typename T>
RelativeTables<T> ProjectRelative(const LayerConfig& c, const EncoderLayerWeights& w,
                                  size_t q_width, size_t kv_width) {
  if (!c.relative) return {};
  const RelativeConfig& r = *c.relative;
  const Matrix<T> rows =
      Norm(r.norm, Numbers<T>(w.relative_embeddings), w.relative_norm.weight, w.relative_norm.bias);
  RelativeTables<T> tables;
  if (!r.own_projections) {
    const Matrix<T> qkv = Projections(rows, w);
    return {Columns(qkv, q_width, kv_width), Columns(qkv, 0, q_width)};
  }
  if (r.content_to_position) tables.keys = Linear(rows, w.pos_k_proj.weight, w.pos_k_proj.bias);
  if (r.position_to_content) tables.queries = Linear(rows, w.pos_q_proj.weight, w.pos_q_proj.bias);
  return tables;
}

// What they add to q_i k_j in a head, whose columns of keys and queries are `pk` and `pq`.
template <typename T>
Matrix<T> RelativeScores(const RelativeConfig& r, const Matrix<T>& q, const Matrix<T>& k,
                         const Matrix<T>& pk, const Matrix<T>& pq) {
  Matrix<T> scores(q.rows, k.rows);
  for (size_t i = 0; i < q.rows; ++i) {
    for (size_t j = 0; j < k.rows; ++j) {
      const size_t t = RelativeRow(r, static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(j));
      T sum(0.0);
      for (size_t d = 0; d < q.cols; ++d) {
        if (r.content_to_position) sum = sum + q(i, d) * pk(t, d);
        if (r.position_to_content) sum = sum + pq(t, d) * k(j, d);
      }
      scores(i, j) = sum;
    }
  }
  return scores;
}

// x [S, d_model]; *weights becomes [head]: [S, S]. `mask` and `positions` are the batch's.
template <typename T>
Matrix<T> SelfAttention(const LayerConfig& c, const EncoderLayerWeights& w, const Matrix<T>& x,
                        const AttentionMask& batch_mask, std::span<const size_t> positions,
                        std::vector<Matrix<T>>* weights) {
  const Matrix<T> qkv = Projections(x, w);
  const size_t kv_heads = c.num_kv_heads != 0 ? c.num_kv_heads : c.num_heads;
  const size_t size = qkv.cols / (c.num_heads + 2 * kv_heads);
  const double scale =
      c.attention_scale != 0 ? c.attention_scale : 1 / std::sqrt(static_cast<double>(size));
  Matrix<T> context(x.rows, c.num_heads * size);
  weights->resize(c.num_heads);
  const RelativeTables<T> relative = ProjectRelative<T>(c, w, c.num_heads * size, kv_heads * size);
  for (size_t h = 0; h < c.num_heads; ++h) {
    const size_t g = h * kv_heads / c.num_heads;
    const auto head_of = [&](size_t index) { return Columns(qkv, index * size, size); };
    AttentionMask mask = batch_mask;
    mask.causal = mask.causal || c.causal;
    if (mask.additive.rank() == 3) mask.additive = mask.additive[h];
    const Matrix<T> bias = PositionBias<T>(c, w, h, x.rows);
    const auto part_of = [&](const Matrix<T>& table, size_t head) {
      return table.data.empty() ? Matrix<T>() : Columns(table, head * size, size);
    };
    const Matrix<T> added =
        c.relative ? RelativeScores(*c.relative, head_of(h), head_of(c.num_heads + g),
                                    part_of(relative.keys, g), part_of(relative.queries, h))
                   : Matrix<T>();
    const auto sees = [&](size_t i, size_t j) {
      return Sees(mask, positions, i, j, {.window = c.window});
    };
    const auto add_bias = [&](T score, size_t i, size_t j) {
      if (c.relative) score = score + added(i, j) * (T(scale) * T(1.0));
      if (!mask.additive.empty()) score = score + T(Added(mask, positions, i, j));
      return bias.data.empty() ? score : score + bias(i, j);
    };
    SetColumns(context, h * size,
               AttentionOver(Prepared(c, head_of(h), w.q_norm.weight, w.q_norm.bias),
                             Prepared(c, head_of(c.num_heads + g), w.k_norm.weight, w.k_norm.bias),
                             Norm(c.v_norm, head_of(c.num_heads + kv_heads + g), {}, {}), scale,
                             sees, add_bias, &(*weights)[h]));
  }
  return Linear(context, w.out_proj.weight, w.out_proj.bias, w.layer_scale1);
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_SELF_ATTENTION_H_
