// SPDX-License-Identifier: Apache-2.0
//
// Draws weights, and runs encoders.

#include "reference/encoder_model.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "encore/workspace.h"
#include "engine/base/bf16.h"
#include "reference/drawn.h"

namespace encore {
namespace {

// The value, or the end of the test with the error.
template <typename T>
T OrEnd(Result<T> result, const char* what) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s: %s\n", what, result.status().message().c_str());
    std::abort();
  }
  return *std::move(result);
}

struct Distribution {
  float deviation;
  float mean;
};

Distribution DistributionOf(const NewWeight& weight) {
  switch (weight.kind) {
    case WeightKind::kMatrix:
      return {1 / std::sqrt(static_cast<float>(weight.inputs)), 0};
    case WeightKind::kNormWeight:
      return {0.1f, static_cast<float>(1 - weight.weight_offset)};
    case WeightKind::kLayerScale:
      return {0.1f, 0.5f};
    case WeightKind::kPositionBias:
    case WeightKind::kRelativeEmbeddings:
      return {1, 0};
    case WeightKind::kBias:
    case WeightKind::kNormBias:
      break;
  }
  return {0.1f, 0};
}

template <typename Element, typename FromFloat>
std::vector<unsigned char> Bytes(const std::vector<float>& values, FromFloat from_float) {
  std::vector<unsigned char> bytes(values.size() * sizeof(Element));
  for (size_t i = 0; i < values.size(); ++i) {
    const Element element = from_float(values[i]);
    std::memcpy(bytes.data() + i * sizeof element, &element, sizeof element);
  }
  return bytes;
}

std::vector<unsigned char> BytesOf(DType type, const std::vector<float>& values) {
  switch (type) {
    case DType::kBF16:
      return Bytes<uint16_t>(values, internal::F32ToBf16);
    case DType::kF16:
      return Bytes<uint16_t>(values, internal::F32ToF16);
    case DType::kF64:  // with bits that f32 does not have
      return Bytes<double>(values, [](float v) { return static_cast<double>(v) * (1 + 0x1p-26); });
    default:
      return Bytes<float>(values, [](float v) { return v; });
  }
}

}  // namespace

EncoderModel::EncoderModel(const EncoderConfig& config, const WeightChoices& choices, uint32_t seed)
    : EncoderModel(config, std::vector<WeightChoices>(config.num_layers(), choices), seed) {}

EncoderModel::EncoderModel(const EncoderConfig& config, const std::vector<WeightChoices>& choices,
                           uint32_t seed)
    : config_(config), seed_(seed) {
  weights_ = MakeWeights(config, choices, [&](const NewWeight& weight) { return Draw(weight); });
}

WeightView EncoderModel::Draw(const NewWeight& weight) {
  const auto [deviation, mean] = DistributionOf(weight);
  memory_.push_back(BytesOf(
      weight.type, RandomFloats(*weight.shape.NumElements(), ++seed_ * 7919, deviation, mean)));
  return WeightView(weight.type, memory_.back().data(), weight.shape);
}

Encoder EncoderModel::Make(const EncoderOptions& options) const {
  return OrEnd(Encoder::Create(config_, weights_, options), "Encoder::Create");
}

std::vector<float> Forward(const Encoder& encoder, const Batch& batch, const std::vector<float>& x,
                           const Executor& executor, const Taps& taps) {
  const Shape shape(batch.seq_starts.back(), encoder.config().d_model);
  const Workspace workspace = OrEnd(encoder.MakeWorkspace(batch, executor), "MakeWorkspace");
  std::vector<float> y(x.size());
  const Status status = encoder.Forward(batch, ConstView(x.data(), shape),
                                        MutableView(y.data(), shape), workspace, executor, taps);
  if (!status.ok()) {
    std::fprintf(stderr, "Forward: %s\n", status.message().c_str());
    std::abort();
  }
  return y;
}

ConstView F32View(const WeightView& weight) {
  return ConstView(static_cast<const float*>(weight.data()), weight.shape(), weight.strides());
}

}  // namespace encore
