// SPDX-License-Identifier: Apache-2.0
//
// How weights and inputs are drawn, and how encoders and calls are put together from them.

#include "bench/measure/forward.h"

#include <algorithm>
#include <random>
#include <utility>

#include "encore/cpu.h"
#include "reference/layer_weights.h"
#include "reference/sequences.h"

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

size_t CopiesForCold(size_t bytes, size_t l3) {
  if (l3 == 0) l3 = size_t{32} << 20;  // unknown
  return std::min(kColdTimesL3 * l3, kMostColdBytes) / std::max<size_t>(bytes, 1) + 2;
}

Result<DrawnWeights> DrawWeights(const EncoderConfig& config, const WeightChoices& choices) {
  const std::vector<WeightChoices> all(config.num_layers(), choices);
  size_t of_matrix = 0;
  size_t of_row = 0;
  MakeWeights(config, all, [&](const NewWeight& weight) {
    size_t& most = weight.kind == WeightKind::kMatrix ? of_matrix : of_row;
    most = std::max(most, *weight.shape.NumElements());
    return WeightView();
  });
  DrawnWeights drawn;
  const auto draw = [&](size_t elements, float low, float high, Tensor* tensor) {
    Result<Tensor> numbers = DrawTensor(Shape(elements), low, high);
    if (!numbers.ok()) return numbers.status();
    *tensor = *std::move(numbers);
    return Status();
  };
  if (Status s = draw(of_matrix, -0.05f, 0.05f, &drawn.matrix); !s.ok()) return s;
  if (Status s = draw(of_row, -0.1f, 0.1f, &drawn.bias); !s.ok()) return s;
  if (Status s = draw(of_row, 0.9f, 1.1f, &drawn.norm); !s.ok()) return s;
  drawn.views = MakeWeights(config, all, [&](const NewWeight& weight) {
    const Tensor& tensor = weight.kind == WeightKind::kMatrix       ? drawn.matrix
                           : weight.kind == WeightKind::kNormWeight ? drawn.norm
                                                                    : drawn.bias;
    return WeightView(DType::kF32, tensor.data(), weight.shape);
  });
  return drawn;
}

Result<std::vector<Encoder>> MakeEncoders(const EncoderConfig& config, size_t count,
                                          const WeightChoices& choices, Products products) {
  const Result<DrawnWeights> weights = DrawWeights(config, choices);
  if (!weights.ok()) return weights.status();
  std::vector<Encoder> encoders;
  while (encoders.size() < count) {
    Result<Encoder> encoder = Encoder::Create(config, weights->views,
                                              {.precision = products.precision,
                                               .executor = Executor::OpenMP(),
                                               .amx_bf16 = products.amx_bf16});
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
