// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot-product attention on [B, H, S, D], and multi-head attention with its projections
// (which packs their weights in each call; an encoder packs them once). 4 D floating point
// operations for each pair of a query and a key that it may see; the softmax between the two
// products counts as none.

#include <string>

#include "bench/common.h"
#include "bench/measure/models.h"
#include "encore/ops.h"

namespace encore::bench {
namespace {

// `batch` sequences of `seq` tokens each.
struct Workload {
  Model model;
  size_t batch;
  size_t seq;
};

constexpr Workload kWorkloads[] = {
    {kExample, 32, 10}, {kMiniLm, 1, 16}, {kMiniLm, 1, 128}, {kMiniLm, 8, 128}, {kBase, 1, 16},
    {kBase, 1, 128},    {kBase, 8, 128},  {kBase, 1, 512},   {kLarge, 1, 128},
};

std::string Name(const char* what, const Workload& load, int threads) {
  return std::string(what) + "/f32/" + load.model.name + "/" + std::to_string(load.batch) + "x" +
         std::to_string(load.seq) + "/threads:" + std::to_string(threads);
}

void ScaledDotProduct(benchmark::State& state, const Workload& load, bool causal, int threads) {
  const size_t head_size = load.model.d_model / load.model.heads;
  const Shape shape(load.batch, load.model.heads, load.seq, head_size);
  const Tensor q = RandomTensor(shape);
  const Tensor k = RandomTensor(shape);
  const Tensor v = RandomTensor(shape);
  Tensor out = ZeroTensor(shape);
  const double seq = static_cast<double>(load.seq);
  const double pairs = causal ? seq * (seq + 1) / 2 : seq * seq;
  const double flops = 4.0 * static_cast<double>(load.batch * load.model.d_model) * pairs;
  const AttentionOptions options{.mask = {.causal = causal},
                                 .executor = OrFail(ExecutorOf(threads))};
  Measure(state, threads,
          Work{.flops = flops, .tokens = static_cast<double>(load.batch * load.seq)}, [&](size_t) {
            return Attention(q.View<float>(), k.View<float>(), v.View<float>(), out.View<float>(),
                             options);
          });
}

void MultiHead(benchmark::State& state, const Workload& load, int threads) {
  const size_t d = load.model.d_model;
  const Tensor x = RandomTensor(Shape(load.batch, load.seq, d));
  const Tensor in_proj = RandomTensor(Shape(3 * d, d), -0.05f, 0.05f);
  const Tensor out_proj = RandomTensor(Shape(d, d), -0.05f, 0.05f);
  Tensor out = ZeroTensor(Shape(load.batch, load.seq, d));
  const MultiHeadAttentionWeights weights{.num_heads = load.model.heads,
                                          .in_proj_weight = in_proj.View<float>(),
                                          .in_proj_bias = {},
                                          .out_proj_weight = out_proj.View<float>(),
                                          .out_proj_bias = {}};
  const AttentionOptions options{.executor = OrFail(ExecutorOf(threads))};
  const double width = static_cast<double>(d);
  const double seq = static_cast<double>(load.seq);
  const double flops =
      static_cast<double>(load.batch) * (8 * seq * width * width + 4 * seq * seq * width);
  Measure(state, threads,
          Work{.flops = flops, .tokens = static_cast<double>(load.batch * load.seq)}, [&](size_t) {
            return MultiHeadAttention(x.View<float>(), x.View<float>(), x.View<float>(), weights,
                                      out.View<float>(), options);
          });
}

}  // namespace

void RegisterBenchmarks() {
  constexpr Workload kLong = {kBase, 1, 4096};
  for (const int threads : ThreadCounts()) {
    for (const Workload& load : kWorkloads) {
      Register(Name("attention", load, threads),
               [=](benchmark::State& state) { ScaledDotProduct(state, load, false, threads); });
    }
    for (const bool causal : {false, true}) {
      Register(Name(causal ? "attention_causal" : "attention", kLong, threads),
               [=](benchmark::State& state) { ScaledDotProduct(state, kLong, causal, threads); });
    }
    for (const Workload& load :
         {Workload{kExample, 32, 10}, Workload{kBase, 1, 128}, Workload{kBase, 1, 512}}) {
      Register(Name("multi_head_attention", load, threads),
               [=](benchmark::State& state) { MultiHead(state, load, threads); });
    }
  }
}

}  // namespace encore::bench
