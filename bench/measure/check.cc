// SPDX-License-Identifier: Apache-2.0
//
// A few tokens through the reference, and through the engine.

#include "bench/measure/check.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "bench/measure/forward.h"
#include "reference/encoder.h"

namespace encore::bench {
namespace {

constexpr size_t kTokens = 4;
// The reference does some 10^8 a second.
constexpr double kMostMultiplications = 5e8;

// Kept: it is the same whatever computes it, and takes longer than all else here.
const reference::Matrix<double>& ExactOutput(const Model& model, const EncoderConfig& config,
                                             const EncoderWeights& weights, ConstView x) {
  static std::vector<std::pair<Model, reference::Matrix<double>>> known;
  for (const auto& [other, y] : known) {
    if (other == model) return y;
  }
  known.emplace_back(model, reference::Encode<double>(config, weights, x).y);
  return known.back().second;
}

}  // namespace

Result<std::optional<double>> ErrorOfLayers(const Model& model, Products products) {
  const size_t layers = model.block == Block::kModernBert ? 2 : 1;
  if (StackFlops(model, {kTokens}, layers) / 2 > kMostMultiplications) {
    return std::optional<double>();
  }
  const EncoderConfig config = ConfigOf(model, layers);
  const Result<DrawnWeights> weights = DrawWeights(config, ChoicesOf(model));
  if (!weights.ok()) return weights.status();
  const Result<Tensor> x = DrawTensor(Shape(kTokens, model.d_model), -1.0f, 1.0f);
  if (!x.ok()) return x.status();
  Result<Encoder> encoder = Encoder::Create(
      config, weights->views, {.precision = products.precision, .amx_bf16 = products.amx_bf16});
  if (!encoder.ok()) return encoder.status();
  Result<ForwardCall> call = ForwardCall::Create({*std::move(encoder)}, {kTokens}, {});
  if (!call.ok()) return call.status();
  if (Status s = call->Run(0); !s.ok()) return s;

  const reference::Matrix<double>& exact =
      ExactOutput(model, config, weights->views, x->View<float>());
  double largest = 0;
  double error = 0;
  for (size_t i = 0; i < kTokens; ++i) {
    for (size_t j = 0; j < model.d_model; ++j) {
      const double difference = std::fabs(static_cast<double>(call->y()(i, j)) - exact(i, j));
      if (!(difference <= error)) error = difference;  // so that NaN stays
      largest = std::max(largest, std::fabs(exact(i, j)));
      if (std::isnan(error)) return std::optional<double>(error);
    }
  }
  return std::optional<double>(error / largest);
}

double MostError(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      break;
    case Precision::kBF16:
      return 1.4e-2;
    case Precision::kInt8:
      return 1e-1;
    case Precision::kInt4:
      return 3.5e-1;
  }
  return 4e-6;
}

bool AllFinite(ConstView y) {
  for (size_t i = 0; i < y.dim(0); ++i) {
    for (size_t j = 0; j < y.dim(1); ++j) {
      if (!std::isfinite(y(i, j))) return false;
    }
  }
  return true;
}

}  // namespace encore::bench
