// SPDX-License-Identifier: Apache-2.0
//
// The encoder block: "block" is one layer again and again, its weights in cache as far as they fit;
// "stack" is as many layers as it takes to read every layer's weights from memory, as a whole model
// does. A sequence of S tokens takes 8 S d^2 + 4 S d d_ff + 4 S^2 d floating point operations a
// layer, softmax, LayerNorm and activation counting as none. "ragged" is a batch of sequences of 4
// to 128 tokens without padding. Not here: accuracy (tests/).

#include <numeric>
#include <string>
#include <vector>

#include "bench/common.h"
#include "bench/models.h"
#include "encore/encoder.h"

namespace encore::bench {
namespace {

size_t LayerBytes(const Model& model) {
  return (4 * model.d_model * model.d_model + 2 * model.d_model * model.d_ff) * sizeof(float);
}

// All layers are views of the same random numbers; the encoder packs them into places of their own.
Encoder MakeEncoder(const Model& model, size_t layers) {
  const size_t d = model.d_model;
  const Tensor in_proj = RandomTensor(Shape(3 * d, d), -0.05f, 0.05f);
  const Tensor out_proj = RandomTensor(Shape(d, d), -0.05f, 0.05f);
  const Tensor linear1 = RandomTensor(Shape(model.d_ff, d), -0.05f, 0.05f);
  const Tensor linear2 = RandomTensor(Shape(d, model.d_ff), -0.05f, 0.05f);
  const Tensor bias = RandomTensor(Shape(3 * d + model.d_ff), -0.1f, 0.1f);
  const Tensor norm = RandomTensor(Shape(d), 0.9f, 1.1f);
  const auto bias_of = [&](size_t n) { return ConstView(bias.View<float>().data(), Shape(n)); };
  const EncoderLayerWeights layer{.in_proj_weight = in_proj.View<float>(),
                                  .in_proj_bias = bias_of(3 * d),
                                  .out_proj_weight = out_proj.View<float>(),
                                  .out_proj_bias = bias_of(d),
                                  .linear1_weight = linear1.View<float>(),
                                  .linear1_bias = bias_of(model.d_ff),
                                  .linear2_weight = linear2.View<float>(),
                                  .linear2_bias = bias_of(d),
                                  .norm1_weight = norm.View<float>(),
                                  .norm1_bias = bias_of(d),
                                  .norm2_weight = norm.View<float>(),
                                  .norm2_bias = bias_of(d)};
  const EncoderConfig config{.d_model = d,
                             .num_heads = model.heads,
                             .d_ff = model.d_ff,
                             .num_layers = layers,
                             .activation = model.activation};
  EncoderWeights weights;
  weights.layers.assign(layers, layer);
  return OrFail(Encoder::Create(config, weights));
}

double FlopsOfLayer(const Model& model, const std::vector<size_t>& lengths) {
  const double d = static_cast<double>(model.d_model);
  const double d_ff = static_cast<double>(model.d_ff);
  double flops = 0;
  for (const size_t length : lengths) {
    const double s = static_cast<double>(length);
    flops += 8 * s * d * d + 4 * s * d * d_ff + 4 * s * s * d;
  }
  return flops;
}

void Forward(benchmark::State& state, const Model& model, const std::vector<size_t>& lengths,
             size_t layers, int threads) {
  const Encoder& encoder = Kept<Encoder>(std::string(model.name) + std::to_string(layers),
                                         [&] { return MakeEncoder(model, layers); });

  std::vector<size_t> starts(lengths.size() + 1, 0);
  std::partial_sum(lengths.begin(), lengths.end(), starts.begin() + 1);
  const Batch batch{.seq_starts = starts};
  const Executor executor = ExecutorOf(threads);
  const Tensor x = RandomTensor(Shape(starts.back(), model.d_model));
  Tensor y = ZeroTensor(Shape(starts.back(), model.d_model));
  const Workspace workspace =
      OrFail(Workspace::Create(OrFail(encoder.WorkspaceBytes(batch, executor))));

  Work work{.flops = static_cast<double>(layers) * FlopsOfLayer(model, lengths),
            .tokens = static_cast<double>(starts.back())};
  if (layers > 1) work.bytes = static_cast<double>(layers * LayerBytes(model));
  Measure(state, threads, work, [&](size_t) {
    return encoder.Forward(batch, x.View<float>(), y.View<float>(), workspace, executor);
  });
}

void RegisterForward(const std::string& name, const Model& model,
                     const std::vector<size_t>& lengths, size_t layers) {
  for (const int threads : ThreadCounts()) {
    Register(name + "/threads:" + std::to_string(threads),
             [=](benchmark::State& state) { Forward(state, model, lengths, layers, threads); });
  }
}

}  // namespace

void RegisterBenchmarks() {
  for (const Workload& load : kWorkloads) {
    RegisterForward(std::string("block/") + load.model.name + "/" + std::to_string(load.batch) +
                        "x" + std::to_string(load.seq),
                    load.model, std::vector<size_t>(load.batch, load.seq), 1);
  }
  std::vector<size_t> ragged;
  for (size_t i = 0; i < 32; ++i) ragged.push_back(4 + i * 4);
  for (const Model& model : {kMiniLm, kBase}) {
    RegisterForward(std::string("block/") + model.name + "/ragged", model, ragged, 1);
  }
  for (const Model& model : {kMiniLm, kBase, kLarge}) {
    for (const size_t seq : {size_t{1}, size_t{16}, size_t{128}}) {
      RegisterForward(std::string("stack/") + model.name + "/1x" + std::to_string(seq), model,
                      {seq}, CopiesForCold(LayerBytes(model)));
    }
  }
}

}  // namespace encore::bench
