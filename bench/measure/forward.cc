// SPDX-License-Identifier: Apache-2.0
//
// How weights and inputs are drawn, and how encoders and calls are put together from them.

#include "bench/measure/forward.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "encore/cpu.h"

namespace encore::bench {

Result<Tensor> DrawTensor(const Shape& shape, float low, float high) {
  Result<Tensor> tensor = Tensor::Create(DType::kF32, shape);
  if (!tensor.ok()) return tensor;
  std::mt19937 generator(12345);
  std::uniform_real_distribution<float> uniform(low, high);
  float* data = static_cast<float*>(tensor->data());
  std::generate(data, data + tensor->size_bytes() / sizeof(float),
                [&] { return uniform(generator); });
  return tensor;
}

size_t CopiesForCold(size_t bytes) {
  // 32 MiB where the system does not tell.
  const size_t l3 = Caches().l3 > 0 ? Caches().l3 : size_t{32} << 20;
  return 2 * l3 / std::max<size_t>(bytes, 1) + 2;
}

Result<std::vector<Encoder>> MakeEncoders(const Model& model, size_t layers, size_t count) {
  const size_t d = model.d_model;
  const EncoderConfig config{.d_model = d,
                             .num_heads = model.heads,
                             .d_ff = model.d_ff,
                             .num_layers = layers,
                             .activation = model.activation};
  // Drawn once: the largest matrix serves as all of them, and one row as all biases.
  const Result<Tensor> matrix = DrawTensor(Shape(std::max(3 * d, model.d_ff), d), -0.05f, 0.05f);
  if (!matrix.ok()) return matrix.status();
  const Result<Tensor> bias = DrawTensor(Shape(std::max(3 * d, model.d_ff)), -0.1f, 0.1f);
  if (!bias.ok()) return bias.status();
  const Result<Tensor> norm = DrawTensor(Shape(d), 0.9f, 1.1f);
  if (!norm.ok()) return norm.status();
  const auto matrix_of = [&](size_t n, size_t k) {
    return ConstView(matrix->View<float>().data(), Shape(n, k));
  };
  const auto bias_of = [&](size_t n) { return ConstView(bias->View<float>().data(), Shape(n)); };
  const EncoderLayerWeights layer{.in_proj_weight = matrix_of(3 * d, d),
                                  .in_proj_bias = bias_of(3 * d),
                                  .out_proj_weight = matrix_of(d, d),
                                  .out_proj_bias = bias_of(d),
                                  .linear1_weight = matrix_of(model.d_ff, d),
                                  .linear1_bias = bias_of(model.d_ff),
                                  .linear2_weight = matrix_of(d, model.d_ff),
                                  .linear2_bias = bias_of(d),
                                  .norm1_weight = norm->View<float>(),
                                  .norm1_bias = bias_of(d),
                                  .norm2_weight = norm->View<float>(),
                                  .norm2_bias = bias_of(d)};
  EncoderWeights weights;
  weights.layers.assign(layers, layer);

  std::vector<Encoder> encoders;
  while (encoders.size() < count) {
    Result<Encoder> encoder = Encoder::Create(config, weights, Executor::OpenMP());
    if (!encoder.ok()) return encoder.status();
    encoders.push_back(*std::move(encoder));
  }
  return encoders;
}

Result<ForwardCall> ForwardCall::Create(std::vector<Encoder> encoders,
                                        const std::vector<size_t>& lengths,
                                        const Executor& executor) {
  ForwardCall call;
  call.encoders_ = std::move(encoders);
  call.executor_ = executor;
  call.starts_.assign(lengths.size() + 1, 0);
  std::partial_sum(lengths.begin(), lengths.end(), call.starts_.begin() + 1);
  const Encoder& encoder = call.encoders_.front();
  const Shape shape(call.tokens(), encoder.config().d_model);

  Result<Tensor> x = DrawTensor(shape, -1.0f, 1.0f);
  if (!x.ok()) return x.status();
  call.x_ = *std::move(x);
  Result<Tensor> y = Tensor::Create(DType::kF32, shape);
  if (!y.ok()) return y.status();
  call.y_ = *std::move(y);
  const Result<size_t> bytes = encoder.WorkspaceBytes(Batch{.seq_starts = call.starts_}, executor);
  if (!bytes.ok()) return bytes.status();
  Result<Workspace> workspace = Workspace::Create(*bytes);
  if (!workspace.ok()) return workspace.status();
  call.workspace_ = *std::move(workspace);
  return call;
}

}  // namespace encore::bench
