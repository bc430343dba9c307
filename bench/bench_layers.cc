// SPDX-License-Identifier: Apache-2.0
//
// What each switch of a layer costs: BERT base's layer, the same with one switch turned, and layers
// of some families in its size. The column to look at is "share", of each one's own operations;
// compare it with that of "plain". "window" is attention alone as far as it can be: a layer of
// 8,192 tokens with a narrow feed-forward network, global and in a window.

#include <string>
#include <utility>
#include <vector>

#include "bench/common.h"
#include "bench/measure/forward.h"
#include "bench/measure/models.h"
#include "encore/encoder.h"
#include "engine/nn/layer_sizes.h"

namespace encore::bench {
namespace {

struct NamedLayer {
  std::string name;
  LayerConfig layer;
  WeightChoices choices = {};
};

LayerConfig BaseLayer() { return ConfigOf(kBase).layers[0]; }

// Base's layer after one change.
template <typename F>
NamedLayer Changed(const std::string& name, const F& change) {
  NamedLayer changed{name, BaseLayer()};
  change(changed.layer);
  return changed;
}

NamedLayer ModernBert() {
  return Changed("modernbert", [](LayerConfig& layer) {
    layer.norm_placement = NormPlacement::kPre;
    layer.rotary = RotaryConfig{};
    layer.window = 64;
    layer.gate = Gate::kFirstHalf;
    layer.d_ff = 1152;
  });
}

NamedLayer EmbeddingGemma() {
  return Changed("embedding_gemma", [](LayerConfig& layer) {
    layer.num_heads = 3;
    layer.num_kv_heads = 1;
    layer.head_size = 256;
    layer.norm = {.type = NormType::kRmsNorm, .epsilon = 1e-6, .weight_offset = 1};
    layer.qk_norm = layer.norm;
    layer.norm_placement = NormPlacement::kBoth;
    layer.rotary = RotaryConfig{};
    layer.activation = Activation::kGeluTanh;
    layer.gate = Gate::kFirstHalf;
    layer.d_ff = 1152;
  });
}

std::vector<NamedLayer> Layers() {
  std::vector<NamedLayer> layers = {
      {"plain", BaseLayer()},
      Changed("rotary", [](LayerConfig& layer) { layer.rotary = RotaryConfig{}; }),
      Changed("gated", [](LayerConfig& layer) { layer.gate = Gate::kFirstHalf; }),
      Changed("rms_norm", [](LayerConfig& layer) { layer.norm.type = NormType::kRmsNorm; }),
      Changed("grouped_4", [](LayerConfig& layer) { layer.num_kv_heads = 4; }),
      Changed("qk_norm", [](LayerConfig& layer) { layer.qk_norm.type = NormType::kRmsNorm; }),
      Changed("alibi", [](LayerConfig& layer) { layer.alibi = AlibiConfig{}; }),
      Changed("buckets", [](LayerConfig& layer) { layer.buckets = BucketConfig{}; }),
      Changed("relative",
              [](LayerConfig& layer) {
                layer.relative = RelativeConfig{.buckets = 256, .max_distance = 512};
              }),
      ModernBert(),
      EmbeddingGemma(),
  };
  layers.push_back({"layer_scale", BaseLayer(), {.layer_scale = true}});
  return layers;
}

void Forward(benchmark::State& state, const std::string& name, const NamedLayer& layer,
             const std::vector<size_t>& lengths, int threads) {
  const EncoderConfig config = EncoderConfig::Uniform(kBase.d_model, 1, layer.layer);
  const auto& encoders = Kept<std::vector<Encoder>>(
      name, [&] { return OrFail(MakeEncoders(config, 1, layer.choices, {ChosenPrecision()})); });
  ForwardCall call = OrFail(ForwardCall::Create(encoders, lengths, OrFail(ExecutorOf(threads))));
  Work work{
      .flops = 0, .tokens = static_cast<double>(call.tokens()), .precision = ChosenPrecision()};
  for (const size_t length : lengths) {
    work.flops += internal::LayerFlops(kBase.d_model, layer.layer, length);
  }
  Measure(state, threads, work, [&](size_t i) { return call.Run(i); });
}

void RegisterLayer(const NamedLayer& layer, size_t batch, size_t seq) {
  for (const int threads : ThreadCounts()) {
    const std::string name = layer.name + "/" + std::string(PrecisionName(ChosenPrecision())) +
                             "/" + std::to_string(batch) + "x" + std::to_string(seq);
    Register(name + "/threads:" + std::to_string(threads), [=](benchmark::State& state) {
      Forward(state, layer.name, layer, std::vector<size_t>(batch, seq), threads);
    });
  }
}

}  // namespace

void RegisterBenchmarks() {
  for (const auto& [batch, seq] :
       {std::pair<size_t, size_t>{1, 16}, {1, 128}, {8, 128}, {1, 512}}) {
    for (const NamedLayer& layer : Layers()) RegisterLayer(layer, batch, seq);
  }
  const auto narrow = [](LayerConfig& layer) { layer.d_ff = 16; };
  RegisterLayer(Changed("window/global", narrow), 1, 8192);
  RegisterLayer(Changed("window/128",
                        [&](LayerConfig& layer) {
                          narrow(layer);
                          layer.window = 64;
                        }),
                1, 8192);
}

}  // namespace encore::bench
