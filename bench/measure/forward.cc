// SPDX-License-Identifier: Apache-2.0
//
// How weights and inputs are drawn, and how encoders and calls are put together from them.

#include "bench/measure/forward.h"

#include <algorithm>
#include <random>
#include <utility>

#include "encore/cpu.h"
#include "tests/reference/layer_weights.h"
#include "tests/reference/sequences.h"

namespace encore::bench {

Result<Tensor> DrawTensor(const Shape& shape, float low, float high) {
  Result<Tensor> tensor = Tensor::Create(DType::kF32, shape);
  if (!tensor.ok()) return tensor;
  std::mt19937 generator(12345);
  std::uniform_real_distribution<float> uniform(low, high);
  float* data = static_cast<float*>(tensor->data());
  const size_t count = tensor->size_bytes() / sizeof(float);
  std::generate(data, data + count, [&] { return uniform(generator); });
  return tensor;
}

size_t CopiesForCold(size_t bytes) {
  // 32 MiB where the system does not tell.
  const size_t l3 = Caches().l3 > 0 ? Caches().l3 : size_t{32} << 20;
  return 2 * l3 / std::max<size_t>(bytes, 1) + 2;
}

Result<std::vector<Encoder>> MakeEncoders(const EncoderConfig& config, size_t count,
                                          const WeightChoices& choices, Precision precision) {
  const std::vector<WeightChoices> all(config.num_layers(), choices);
  // Drawn once: the largest matrix serves as all of them, and one row as all biases.
  size_t elements = 0;
  MakeWeights(config, all, [&](const NewWeight& weight) {
    elements = std::max(elements, *weight.shape.NumElements());
    return WeightView();
  });
  const Result<Tensor> matrix = DrawTensor(Shape(elements), -0.05f, 0.05f);
  if (!matrix.ok()) return matrix.status();
  const Result<Tensor> bias = DrawTensor(Shape(elements), -0.1f, 0.1f);
  if (!bias.ok()) return bias.status();
  const Result<Tensor> norm = DrawTensor(Shape(elements), 0.9f, 1.1f);
  if (!norm.ok()) return norm.status();
  const EncoderWeights weights = MakeWeights(config, all, [&](const NewWeight& weight) {
    const Tensor& drawn = weight.kind == WeightKind::kMatrix       ? *matrix
                          : weight.kind == WeightKind::kNormWeight ? *norm
                                                                   : *bias;
    return WeightView(DType::kF32, drawn.data(), weight.shape);
  });

  std::vector<Encoder> encoders;
  while (encoders.size() < count) {
    Result<Encoder> encoder =
        Encoder::Create(config, weights, {.precision = precision, .executor = Executor::OpenMP()});
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
  call.starts_ = Starts(lengths);
  const Encoder& encoder = call.encoders_.front();
  const Shape shape(call.tokens(), encoder.config().d_model);

  Result<Tensor> x = DrawTensor(shape, -1.0f, 1.0f);
  if (!x.ok()) return x.status();
  call.x_ = *std::move(x);
  Result<Tensor> y = Tensor::Create(DType::kF32, shape);
  if (!y.ok()) return y.status();
  call.y_ = *std::move(y);
  Result<Workspace> workspace = encoder.MakeWorkspace(Batch{.seq_starts = call.starts_}, executor);
  if (!workspace.ok()) return workspace.status();
  call.workspace_ = *std::move(workspace);
  return call;
}

}  // namespace encore::bench
