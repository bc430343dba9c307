// SPDX-License-Identifier: Apache-2.0
//
// Draws, runs and checks one encoder block.

#include "tools/encore/seeded_block.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "encore/workspace.h"
#include "tests/reference/encoder.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

// offset + amplitude * (2 r - 1), r drawn from [0, 1).
Tensor Uniform(const Shape& shape, double offset, double amplitude, NumpyRandom& random) {
  Tensor tensor = Take(Tensor::Create(DType::kF32, shape));
  float* data = static_cast<float*>(tensor.data());
  for (size_t i = 0; i < tensor.size_bytes() / sizeof(float); ++i) {
    data[i] = static_cast<float>(offset + amplitude * (2 * random.Next() - 1));
  }
  return tensor;
}

std::vector<size_t> EqualStarts(size_t batch, size_t seq) {
  std::vector<size_t> starts(batch + 1);
  for (size_t b = 0; b <= batch; ++b) starts[b] = b * seq;
  return starts;
}

void Compare(float found, const reference::Rounded& exact, Deviation& deviation) {
  const double error = std::fabs(static_cast<double>(found) - exact.value);
  const double share = error / exact.Bound();
  // Once NaN, always NaN.
  if (!(error <= deviation.largest) && !std::isnan(deviation.largest)) {
    deviation.largest = error;
    deviation.bound = exact.Bound();
  }
  if (!(share <= deviation.share_of_bound) && !std::isnan(deviation.share_of_bound)) {
    deviation.share_of_bound = share;
  }
}

}  // namespace

EncoderWeights SeededBlock::Views() const {
  const auto view = [&](size_t i) { return weights[i].tensor.View<float>(); };
  return {.layers = {{.in_proj_weight = view(0),
                      .in_proj_bias = view(1),
                      .out_proj_weight = view(2),
                      .out_proj_bias = view(3),
                      .linear1_weight = view(4),
                      .linear1_bias = view(5),
                      .linear2_weight = view(6),
                      .linear2_bias = view(7),
                      .norm1_weight = view(8),
                      .norm1_bias = view(9),
                      .norm2_weight = view(10),
                      .norm2_bias = view(11)}},
          .norm_weight = {},
          .norm_bias = {}};
}

SeededBlock DrawBlock(const EncoderConfig& config, NumpyRandom& random) {
  SeededBlock block{config, {}};
  const size_t d = config.d_model;
  const auto linear = [&](const std::string& weight, const std::string& bias, size_t out,
                          size_t in) {
    const double amplitude = 1 / std::sqrt(static_cast<double>(in));
    block.weights.push_back({weight, Uniform({out, in}, 0, amplitude, random)});
    block.weights.push_back({bias, Uniform({out}, 0, amplitude, random)});
  };
  const auto norm = [&](const std::string& name) {
    block.weights.push_back({name + ".weight", Uniform({d}, 1, 0.1, random)});
    block.weights.push_back({name + ".bias", Uniform({d}, 0, 0.1, random)});
  };
  linear("self_attn.in_proj_weight", "self_attn.in_proj_bias", 3 * d, d);
  linear("self_attn.out_proj.weight", "self_attn.out_proj.bias", d, d);
  linear("ff.0.weight", "ff.0.bias", config.d_ff, d);
  linear("ff.2.weight", "ff.2.bias", d, config.d_ff);
  norm("norm1");
  norm("norm2");
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
  run.y = Take(Tensor::Create(DType::kF32, x.shape()));
  run.attention = Take(Tensor::Create(DType::kF32, {batch, encoder.config().num_heads, seq, seq}));
  std::vector<MutableView> taps;
  for (size_t b = 0; b < batch; ++b) taps.push_back(run.attention.View<float>()[b]);

  const std::vector<size_t> starts = EqualStarts(batch, seq);
  const Batch packed{.seq_starts = starts};
  const Workspace workspace =
      Take(Workspace::Create(Take(encoder.WorkspaceBytes(packed, executor))));
  const Shape rows(batch * seq, d);
  Check(encoder.Forward(packed, ConstView(static_cast<const float*>(x.data()), rows),
                        MutableView(static_cast<float*>(run.y.data()), rows), workspace, executor,
                        {.attention = taps}));
  return run;
}

BlockCheck CheckBlock(const SeededBlock& block, const Tensor& x, const BlockRun& run) {
  BlockCheck check;
  const EncoderWeights weights = block.Views();
  const ConstView found_y = run.y.View<float>();
  const ConstView found_attention = run.attention.View<float>();
  const size_t seq = x.shape()[1];
  for (size_t b = 0; b < x.shape()[0]; ++b) {
    const auto exact =
        reference::Encode<reference::Rounded>(block.config, weights, x.View<float>()[b]);
    for (size_t i = 0; i < seq; ++i) {
      for (size_t c = 0; c < block.config.d_model; ++c) {
        Compare(found_y(b, i, c), exact.y(i, c), check.y);
      }
      for (size_t h = 0; h < block.config.num_heads; ++h) {
        for (size_t j = 0; j < seq; ++j) {
          Compare(found_attention(b, h, i, j), exact.attention[0][h](i, j), check.attention);
        }
      }
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
