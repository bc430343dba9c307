// SPDX-License-Identifier: Apache-2.0
//
// Draws weights, and runs encoders.

#include "tests/reference/encoder_model.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "encore/workspace.h"
#include "tests/reference/drawn.h"

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

}  // namespace

EncoderModel::EncoderModel(const EncoderConfig& config, bool biases, uint32_t seed)
    : config_(config), seed_(seed) {
  const size_t d = config.d_model;
  const size_t ff = config.d_ff;
  const auto width = [](size_t size) { return 1 / std::sqrt(static_cast<float>(size)); };
  const auto bias = [&](size_t size) { return biases ? Draw(Shape(size), 0.1f, 0) : ConstView(); };
  for (size_t i = 0; i < config.num_layers; ++i) {
    EncoderLayerWeights& w = weights_.layers.emplace_back();
    w.in_proj_weight = Draw({3 * d, d}, width(d), 0);
    w.in_proj_bias = bias(3 * d);
    w.out_proj_weight = Draw({d, d}, width(d), 0);
    w.out_proj_bias = bias(d);
    w.linear1_weight = Draw({ff, d}, width(d), 0);
    w.linear1_bias = bias(ff);
    w.linear2_weight = Draw({d, ff}, width(ff), 0);
    w.linear2_bias = bias(d);
    w.norm1_weight = Draw(Shape(d), 0.1f, 1);
    w.norm1_bias = bias(d);
    w.norm2_weight = Draw(Shape(d), 0.1f, 1);
    w.norm2_bias = bias(d);
  }
  if (config.final_norm) {
    weights_.norm_weight = Draw(Shape(d), 0.1f, 1);
    weights_.norm_bias = bias(d);
  }
}

ConstView EncoderModel::Draw(const Shape& shape, float scale, float mean) {
  memory_.push_back(RandomFloats(*shape.NumElements(), ++seed_ * 7919, scale, mean));
  return ConstView(memory_.back().data(), shape);
}

Encoder EncoderModel::Make() const {
  return OrEnd(Encoder::Create(config_, weights_), "Encoder::Create");
}

std::vector<float> Forward(const Encoder& encoder, const Batch& batch, const std::vector<float>& x,
                           const Executor& executor, const Taps& taps) {
  const Shape shape(batch.seq_starts.back(), encoder.config().d_model);
  const Workspace workspace =
      OrEnd(Workspace::Create(OrEnd(encoder.WorkspaceBytes(batch, executor), "WorkspaceBytes")),
            "Workspace::Create");
  std::vector<float> y(x.size());
  const Status status = encoder.Forward(batch, ConstView(x.data(), shape),
                                        MutableView(y.data(), shape), workspace, executor, taps);
  if (!status.ok()) {
    std::fprintf(stderr, "Forward: %s\n", status.message().c_str());
    std::abort();
  }
  return y;
}

std::vector<size_t> Starts(const std::vector<size_t>& lengths) {
  std::vector<size_t> starts{0};
  for (const size_t length : lengths) starts.push_back(starts.back() + length);
  return starts;
}

}  // namespace encore
