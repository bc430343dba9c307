// SPDX-License-Identifier: Apache-2.0
//
// Draws, runs and checks one encoder block.

#include "tools/encore/seeded_block.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "encore/workspace.h"
#include "tools/encore/definitions.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

// offset + amplitude * (2 r - 1), r drawn from [0, 1).
Tensor Uniform(const Shape& shape, double offset, double amplitude, NumpyRandom& random) {
  Tensor tensor = NewTensor(shape);
  float* data = static_cast<float*>(tensor.data());
  for (size_t i = 0; i < tensor.size_bytes() / sizeof(float); ++i) {
    data[i] = static_cast<float>(offset + amplitude * (2 * random.Next() - 1));
  }
  return tensor;
}

// Once NaN, always NaN.
bool IsLarger(double value, double largest) { return !(value <= largest) && !std::isnan(largest); }

std::span<const float> Elements(ConstView matrix) {
  return {matrix.data(), matrix.dim(0) * matrix.dim(1)};
}

}  // namespace

void Deviation::Compare(double found, double exact, double allowed) {
  const double error = std::fabs(found - exact);
  if (error == 0) return;  // where 0 is allowed, too
  if (IsLarger(error, largest)) {
    largest = error;
    bound = allowed;
  }
  if (IsLarger(error / allowed, share_of_bound)) share_of_bound = error / allowed;
}

void Deviation::Compare(std::span<const float> found,
                        const reference::Matrix<reference::Rounded>& exact) {
  for (size_t i = 0; i < found.size(); ++i) {
    Compare(found[i], exact.data[i].value, exact.data[i].Bound());
  }
}

void Deviation::Compare(std::span<const float> found, const reference::Bounded& exact) {
  for (size_t i = 0; i < found.size(); ++i) {
    Compare(found[i], exact.value.data[i], exact.error.data[i]);
  }
}

SeededBlock DrawBlock(const EncoderConfig& config, NumpyRandom& random) {
  SeededBlock block{config, {}, {}};
  const WeightChoices everything;
  block.views = MakeWeights(config, {&everything, 1}, [&](const NewWeight& weight) {
    const bool of_linear = weight.inputs > 0;
    const double amplitude = of_linear ? 1 / std::sqrt(static_cast<double>(weight.inputs)) : 0.1;
    const double mean = weight.kind == WeightKind::kNormWeight ? 1 : 0;
    Tensor drawn = Uniform(weight.shape, mean, amplitude, random);
    const WeightView view(DType::kF32, drawn.data(), weight.shape);
    block.weights.push_back(
        {std::string(weight.alias.empty() ? weight.name : weight.alias), std::move(drawn)});
    return view;
  });
  return block;
}

Tensor DrawInput(const Shape& shape, NumpyRandom& random) {
  return Uniform(shape, 0, std::sqrt(3.0), random);
}

BlockRun RunBlock(const Encoder& encoder, const Tensor& x, const Executor& executor) {
  const size_t batch = x.shape()[0];
  const size_t seq = x.shape()[1];
  const size_t d = x.shape()[2];
  BlockRun run;
  run.y = NewTensor(x.shape());
  run.attention = NewTensor({batch, encoder.config().layers[0].num_heads, seq, seq});
  std::vector<MutableView> taps;
  for (size_t b = 0; b < batch; ++b) taps.push_back(run.attention.View<float>()[b]);

  const std::vector<size_t> starts = Starts(std::vector<size_t>(batch, seq));
  const Batch packed{.seq_starts = starts};
  const Workspace workspace = Take(encoder.MakeWorkspace(packed, executor));
  const Shape rows(batch * seq, d);
  Check(encoder.Forward(packed, ConstView(static_cast<const float*>(x.data()), rows),
                        MutableView(static_cast<float*>(run.y.data()), rows), workspace, executor,
                        {.attention = taps}));
  return run;
}

BlockCheck CheckBlock(const SeededBlock& block, const Tensor& x, const BlockRun& run) {
  BlockCheck check;
  for (size_t b = 0; b < x.shape()[0]; ++b) {
    const auto exact =
        reference::Encode<reference::Rounded>(block.config, block.views, x.View<float>()[b]);
    check.y.Compare(Elements(run.y.View<float>()[b]), exact.y);
    for (size_t h = 0; h < block.config.layers[0].num_heads; ++h) {
      check.attention.Compare(Elements(run.attention.View<float>()[b][h]), exact.attention[0][h]);
    }
  }
  return check;
}

std::string Describe(const Deviation& deviation) {
  char text[128];
  std::snprintf(text, sizeof(text), "largest error %.1e, bound %.1e; at most %.0f %% of a bound",
                deviation.largest, deviation.bound, 100 * deviation.share_of_bound);
  return text;
}

}  // namespace encore::tool
