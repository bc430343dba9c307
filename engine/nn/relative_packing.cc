// SPDX-License-Identifier: Apache-2.0
//
// Projections of a table of relative embeddings, and their layout.

#include "engine/nn/relative_packing.h"

#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/ops/gemm.h"

namespace encore::inline v0_1::internal {
namespace {

Status NoMemory(const RelativeToPack& relative) {
  return Status(ErrorCode::kOutOfMemory, "no memory to project relative embeddings of shape " +
                                             relative.embeddings.shape().ToString());
}

// A packed row of a left-hand side, in whole cache lines.
size_t RowBytes(const GemmKernel& kernel, size_t k) {
  return RoundUp(kernel.GroupsOf(k) * kernel.kr * kernel.a_bytes, 64);
}

// x [rows] times a packed matrix, all columns.
class Projected {
 public:
  [[nodiscard]] bool Allocate(const PackedMatrix& matrix, size_t rows) {
    const PackedView& view = matrix.view();
    ld_ = RoundUp(view.n, 16);
    if (!out_.Allocate(rows * ld_)) return false;
    if (view.kernel->pack_lhs == nullptr) return true;
    stride_ = RowBytes(*view.kernel, view.k);
    return made_.Allocate(rows * stride_) && quants_.Allocate(rows);
  }
  void Run(Team& team, ConstRows x, const PackedMatrix& matrix, size_t rows) {
    const PackedView& view = matrix.view();
    GemmArgs args{};
    args.a = InputRows::Of(x);
    args.b = view;
    args.c = {out_.data(), ld_};
    if (view.kernel->pack_lhs != nullptr) {
      const PackedLhs lhs{made_.data(), stride_, quants_.data()};
      args.a = InputRows::Of(lhs);
      const EvenSplit split{rows, std::min(rows, static_cast<size_t>(team.threads()))};
      team.ForEach(split.parts, [&](size_t i, int /*thread*/) {
        const size_t begin = split.begin(i);
        view.kernel->pack_lhs({.in = x.From(begin),
                               .rows = split.begin(i + 1) - begin,
                               .k = view.k,
                               .out = lhs.From(begin),
                               .factor = view.row_factor});
      });
    }
    Gemm(team, args, matrix.blocking(), rows);
  }
  // From a column on.
  ConstRows From(size_t column) const { return {out_.data() + column, ld_}; }

 private:
  size_t ld_ = 0;
  size_t stride_ = 0;
  AlignedBuffer<float> out_;
  AlignedBuffer<std::byte> made_;
  AlignedBuffer<RowQuant> quants_;
};

// The embeddings that some distance has, after their norm.
void ReadEmbeddings(Team& team, const RelativeToPack& relative, const std::vector<size_t>& used,
                    Rows out) {
  const size_t d_model = relative.layer->sizes.d_model;
  const EvenSplit split{used.size(), std::min(used.size(), static_cast<size_t>(team.threads()))};
  team.ForEach(split.parts, [&](size_t i, int /*thread*/) {
    const size_t begin = split.begin(i);
    const size_t end = split.begin(i + 1);
    for (size_t r = begin; r < end; ++r) {
      ReadRows(WeightSource::One(relative.embeddings), used[r], 1, 0, d_model, out.row(r), out.ld);
    }
    if (!relative.norm.given()) return;
    relative.norm.Run(out.From(begin), {nullptr, 0}, out.From(begin), end - begin, d_model);
  });
}

// The heads of a table of keys, or of queries.
void PackHeads(Team& team, const PackedRelative& packed, size_t heads, ConstRows pk,
               std::byte* data) {
  team.ForEach(heads, [&](size_t h, int /*thread*/) {
    PackInto(packed.keys, pk.data + h * packed.keys.k, 1, static_cast<ptrdiff_t>(pk.ld),
             data + h * packed.key_bytes());
  });
}
void MakeHeads(Team& team, const PackedRelative& packed, size_t heads, ConstRows pq,
               const PackedLhs& out) {
  const size_t head_size = packed.keys.k;
  const GemmKernel& kernel = *packed.keys.kernel;
  team.ForEach(heads, [&](size_t h, int /*thread*/) {
    const ConstRows in{pq.data + h * head_size, pq.ld};
    const PackedLhs lhs = out.From(h * packed.rows);
    if (kernel.pack_lhs != nullptr) {
      kernel.pack_lhs({.in = in, .rows = packed.rows, .k = head_size, .out = lhs});
      return;
    }
    for (size_t r = 0; r < packed.rows; ++r) {
      std::copy_n(in.row(r), head_size, reinterpret_cast<float*>(lhs.From(r).data));
    }
  });
}

size_t KeyBytes(const RelativeToPack& relative) {
  const PackedLayer& layer = *relative.layer;
  return relative.config.content_to_position ? layer.sizes.kv_heads * layer.relative.key_bytes()
                                             : 0;
}

}  // namespace

size_t RelativeToPack::bytes() const {
  const PackedRelative& packed = layer->relative;
  const size_t queries =
      config.position_to_content ? layer->sizes.heads * packed.rows * packed.queries.stride : 0;
  return KeyBytes(*this) + queries;
}

Status PrepareRelative(const RelativeConfig& config, const EncoderLayerWeights& weights,
                       const RelativeRows& rows, const GemmKernel& attention, PackedLayer* layer,
                       RelativeToPack* relative) {
  const size_t head_size = layer->sizes.head_size;
  layer->relative.rows = rows.used().size();
  layer->relative.keys = {.kernel = &attention,
                          .k = head_size,
                          .n = layer->relative.rows,
                          .nv = ChoosePanelVectors(attention, layer->relative.rows),
                          .panel_rows = head_size};
  layer->relative.queries.stride = RowBytes(attention, head_size);
  relative->layer = layer;
  relative->config = config;
  relative->embeddings = weights.relative_embeddings;
  relative->q_proj = weights.pos_q_proj;
  relative->k_proj = weights.pos_k_proj;
  return PackNorm(config.norm, weights.relative_norm, &relative->norm);
}

Status PackRelative(const RelativeToPack& relative, const RelativeRows& rows,
                    const Executor& executor, std::byte* data) {
  PackedLayer& layer = *relative.layer;
  PackedRelative& packed = layer.relative;
  const RelativeConfig& config = relative.config;
  const GemmKernel& attention = *packed.keys.kernel;
  // With the layer's own projections one product makes both.
  PackedMatrix own[2];
  const PackedMatrix* q_matrix = &layer.qkv;
  const PackedMatrix* k_matrix = &layer.qkv;
  if (config.own_projections && config.position_to_content) {
    const LinearWeights& w = relative.q_proj;
    ENCORE_ASSIGN_OR_RETURN(own[0],
                            PackedMatrix::Create(WeightSource::One(w.weight, w.bias), attention));
    q_matrix = &own[0];
  }
  if (config.own_projections && config.content_to_position) {
    const LinearWeights& w = relative.k_proj;
    ENCORE_ASSIGN_OR_RETURN(own[1],
                            PackedMatrix::Create(WeightSource::One(w.weight, w.bias), attention));
    k_matrix = &own[1];
  }
  const size_t ld = RoundUp(layer.sizes.d_model, 16);
  AlignedBuffer<float> embeddings;
  Projected pq;
  Projected pk;
  const bool shared = !config.own_projections;
  if (!embeddings.Allocate(packed.rows * ld) ||
      ((shared || config.position_to_content) && !pq.Allocate(*q_matrix, packed.rows)) ||
      (!shared && config.content_to_position && !pk.Allocate(*k_matrix, packed.rows))) {
    return NoMemory(relative);
  }
  if (config.content_to_position) packed.key_data = data;
  if (config.position_to_content) packed.queries.data = data + KeyBytes(relative);
  ENCORE_RETURN_IF_ERROR(RunTeam(executor, [&](Team& team) {
    const Rows x{embeddings.data(), ld};
    ReadEmbeddings(team, relative, rows.used(), x);
    if (shared || config.position_to_content) pq.Run(team, x, *q_matrix, packed.rows);
    if (!shared && config.content_to_position) pk.Run(team, x, *k_matrix, packed.rows);
    if (config.content_to_position) {
      PackHeads(team, packed, layer.sizes.kv_heads,
                shared ? pq.From(layer.sizes.q_width()) : pk.From(0), data);
    }
    if (config.position_to_content) {
      MakeHeads(team, packed, layer.sizes.heads, pq.From(0), packed.queries);
    }
  }));
  return {};
}

}  // namespace encore::internal
