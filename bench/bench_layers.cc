// SPDX-License-Identifier: Apache-2.0
//
// What each switch of a layer costs: BERT base's layer, the same with one switch turned, and layers
// of some families in its size. The column to look at is "share", of each one's own operations;
// compare it with that of "plain". "window" is attention alone as far as it can be: a layer of
// 8,192 tokens with a narrow feed-forward network, global and in a window. "stages" is where the
// time of a whole layer goes.

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "bench/common.h"
#include "bench/measure/forward.h"
#include "bench/measure/models.h"
#include "bench/measure/samples.h"
#include "encore/cpu.h"
#include "encore/encoder.h"
#include "encore/workspace.h"
#include "engine/nn/layer_sizes.h"
#include "engine/nn/product_observer.h"
#include "engine/nn/row_steps.h"
#include "reference/sequences.h"

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

enum Stage : size_t { kProducts, kFirstProduct, kAttention, kPacking, kNorms, kStages };

// Calls of a layer on one thread, and the seconds of its stages in each.
class StageTimer final : public internal::ProductObserver {
 public:
  StageTimer(const Encoder& encoder, const std::vector<size_t>& lengths)
      : encoder_(encoder),
        first_(&internal::EncoderAccess::Layers(encoder).front().linear1),
        starts_(Starts(lengths)),
        x_(RandomTensor(Shape(starts_.back(), encoder.config().d_model))),
        y_(ZeroTensor(x_.shape())),
        workspace_(OrFail(encoder.MakeWorkspace(Batch{.seq_starts = starts_}))) {}

  // Of a call.
  double Run() {
    laps_ = {};
    const double start = last_ = now_();
    const Status status =
        internal::EncoderAccess::Forward(encoder_, Batch{.seq_starts = starts_}, x_.View<float>(),
                                         y_.View<float>(), workspace_, this);
    if (!status.ok()) Fail(status);
    for (size_t s = 0; s < kStages; ++s) seconds_[s].push_back(laps_[s]);
    return last_ - start;
  }
  double Median(Stage stage) const { return Quantile(seconds_[stage], 0.5); }

 private:
  void Observe(const internal::PackedMatrix&, const float*, size_t, size_t) override {}
  void AfterStep(const internal::RowStep* step) override {
    const double now = now_();
    laps_[StageOf(step)] += now - last_;
    last_ = now;
  }
  Stage StageOf(const internal::RowStep* step) const {
    if (step == nullptr) return kAttention;
    if (step->kind == internal::StepKind::kPackLhs) return kPacking;
    if (step->kind == internal::StepKind::kNorm) return kNorms;
    return step->matrix == first_ ? kFirstProduct : kProducts;
  }

  const Encoder& encoder_;
  const internal::PackedMatrix* first_;  // of the feed-forward network
  const std::vector<size_t> starts_;
  Tensor x_;
  Tensor y_;
  Workspace workspace_;
  const ClockFn now_ = ClockOf(1);
  double last_ = 0;
  std::array<double, kStages> laps_ = {};
  std::array<std::vector<double>, kStages> seconds_;
};

// GELU is what the same layer with ReLU, a comparison in the tile, takes less in the product before
// it. Calls of the two alternate.
void Stages(benchmark::State& state, const NamedWorkload& load) {
  Model plain = load.model;
  plain.activation = Activation::kRelu;
  const Products products = {ChosenPrecision()};
  const Encoder encoder = OrFail(MakeEncoders(load.model, 1, 1, products)).front();
  const Encoder without = OrFail(MakeEncoders(plain, 1, 1, products)).front();
  const BoundThread bound(1);
  StageTimer layer(encoder, load.lengths);
  StageTimer beside(without, load.lengths);
  layer.Run();  // warms the caches
  Samples samples(Executor::Inline(), products);
  while (state.KeepRunning()) {
    beside.Run();
    const double seconds = layer.Run();
    state.SetIterationTime(seconds);
    samples.Add(seconds);
  }
  samples.Finish();
  const double first = beside.Median(kFirstProduct);
  const double product = layer.Median(kProducts) + first;
  const double gelu = layer.Median(kFirstProduct) - first;
  const double all =
      product + gelu + layer.Median(kAttention) + layer.Median(kPacking) + layer.Median(kNorms);
  state.counters["products_percent"] = 100 * product / all;
  state.counters["activation_percent"] = 100 * gelu / all;
  state.counters["attention_percent"] = 100 * layer.Median(kAttention) / all;
  state.counters["packing_percent"] = 100 * layer.Median(kPacking) / all;
  state.counters["norms_percent"] = 100 * layer.Median(kNorms) / all;
  const auto width = static_cast<double>(load.model.d_model);
  const double flops = static_cast<double>(Tokens(load)) * width *
                       (8 * width + 4 * static_cast<double>(load.model.d_ff));
  state.counters["products_share_percent"] = 100 * flops / product / samples.PeakFlops();
  state.SetLabel(ActiveTarget());
}

void RegisterStages(const std::string& workload) {
  Register("stages/" + std::string(PrecisionName(ChosenPrecision())) + "/" + workload,
           [load = *FindWorkload(workload)](benchmark::State& state) { Stages(state, load); });
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
  for (const char* workload :
       {"example_32x10", "minilm_1x16", "minilm_1x128", "minilm_8x128", "base_1x16", "base_1x128",
        "base_8x128", "base_1x512", "large_1x128"}) {
    RegisterStages(workload);
  }
}

}  // namespace encore::bench
