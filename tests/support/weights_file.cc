// SPDX-License-Identifier: Apache-2.0
//
// Writes by the table of a layer's tensors.

#include "tests/support/weights_file.h"

#include <algorithm>
#include <deque>
#include <span>

#include "encore/safetensors.h"
#include "encore/torch_weights.h"
#include "engine/nn/layer_tensors.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "tests/support/compare.h"

namespace encore {
namespace {

SafetensorsEntry Entry(const std::string& name, const Shape& shape,
                       const std::vector<float>& numbers) {
  return {name, DType::kF32, shape, std::as_bytes(std::span(numbers))};
}

}  // namespace

void WriteWeightsFile(const std::string& path, const WeightsFile& file) {
  const EncoderModel model(TorchStack{.d_model = kFileModel,
                                      .num_heads = 4,
                                      .d_ff = kFileInner,
                                      .num_layers = 2,
                                      .norm_first = file.norm_first});
  std::deque<std::vector<float>> memory;
  std::vector<SafetensorsEntry> entries;
  for (size_t i = 0; i < 2; ++i) {
    for (const internal::LayerTensor& tensor : internal::kLayerTensors) {
      const WeightView& view = tensor.In(model.weights().layers[i]);
      if (view.empty()) continue;
      const std::string name = "layers." + std::to_string(i) + "." + tensor.name();
      std::vector<float>& numbers = memory.emplace_back(*view.shape().NumElements());
      std::copy_n(F32View(view).data(), numbers.size(), numbers.data());
      if (file.change) file.change(name, numbers);
      entries.push_back(Entry(name, view.shape(), numbers));
    }
  }
  for (const auto& [name, numbers] : file.more) {
    entries.push_back(Entry(name, Shape(numbers.size()), numbers));
  }
  const Status status = WriteSafetensors(
      path, entries,
      {{"nhead", "4"}, {"activation", "gelu"}, {"norm_first", file.norm_first ? "True" : "False"}});
  EXPECT_TRUE(status.ok()) << status.message();
}

std::vector<float> OutputOfFile(const std::string& path, const std::vector<float>& x) {
  const Result<TorchWeights> weights = TorchWeights::Open(path);
  EXPECT_TRUE(weights.ok()) << weights.status().message();
  return weights.ok() ? OutputOfFile(path, weights->precision(), weights->keep(), x)
                      : std::vector<float>();
}

std::vector<float> OutputOfFile(const std::string& path, Precision precision,
                                const std::vector<MatrixOfLayer>& keep,
                                const std::vector<float>& x) {
  const Result<TorchWeights> weights = TorchWeights::Open(path);
  EXPECT_TRUE(weights.ok()) << weights.status().message();
  if (!weights.ok()) return {};
  const Result<Encoder> encoder = Encoder::Create(weights->config(), weights->weights(),
                                                  {.precision = precision, .keep = keep});
  EXPECT_TRUE(encoder.ok()) << encoder.status().message();
  if (!encoder.ok()) return {};
  const std::vector<float> drawn = RandomFloats(12 * kFileModel, 3);
  const std::vector<float>& input = x.empty() ? drawn : x;
  const size_t tokens = input.size() / kFileModel;
  return Forward(*encoder, Batch{.seq_starts = {0, tokens / 3, tokens}}, input);
}

double RelativeSquare(const std::vector<float>& y, const std::vector<float>& exact) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double difference = static_cast<double>(y.at(i)) - exact[i];
    error += difference * difference;
    norm += static_cast<double>(exact[i]) * exact[i];
  }
  return error / norm;
}

}  // namespace encore
