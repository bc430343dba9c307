// SPDX-License-Identifier: Apache-2.0
//
// Encoders with drawn weights, and forward passes over drawn input, ready to be timed.

#ifndef ENCORE_BENCH_MEASURE_FORWARD_H_
#define ENCORE_BENCH_MEASURE_FORWARD_H_

#include <cstddef>
#include <vector>

#include "bench/measure/models.h"
#include "bench/measure/peak.h"
#include "encore/cpu.h"
#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/workspace.h"
#include "reference/layer_weights.h"

namespace encore::bench {

// f32, uniform in [low, high), the same numbers each time.
Result<Tensor> DrawTensor(const Shape& shape, float low, float high);

// Memory that keeps a copy out of the last-level cache takes this many copies of `bytes` each, used
// in turn: together they are over 16 times that cache, as are the buffers that memory's bandwidth
// is measured with (read.h). A cache keeps some of a walk that is longer than itself: a quarter of
// one of four times Zen 5's, which raised the bandwidth by as much. Of a cache so large that this
// would be more than kMostColdBytes, it holds a part of them.
size_t CopiesForCold(size_t bytes, size_t l3 = Caches().l3);
inline constexpr size_t kColdTimesL3 = 16;
inline constexpr size_t kMostColdBytes = size_t{4} << 30;

// Weights of a configuration, as MakeEncoders draws them: the largest matrix serves as all of them,
// and one row as all biases.
struct DrawnWeights {
  Tensor matrix;
  Tensor bias;
  Tensor norm;
  EncoderWeights views;
};
Result<DrawnWeights> DrawWeights(const EncoderConfig& config, const WeightChoices& choices);

// `count` encoders. The numbers are the same in all layers; each is packed
// into a place of its own.
Result<std::vector<Encoder>> MakeEncoders(const EncoderConfig& config, size_t count,
                                          const WeightChoices& choices = {},
                                          Products products = {});
inline Result<std::vector<Encoder>> MakeEncoders(const Model& model, size_t layers, size_t count,
                                                 Products products = {}) {
  return MakeEncoders(ConfigOf(model, layers), count, ChoicesOf(model), products);
}

// One batch, its input and output, and the workspace of one caller.
class ForwardCall {
 public:
  // The encoders must be of one configuration: call i takes encoder i mod their number.
  static Result<ForwardCall> Create(std::vector<Encoder> encoders,
                                    const std::vector<size_t>& lengths, const Executor& executor);

  Status Run(size_t i) {
    return encoders_[i % encoders_.size()].Forward(Batch{.seq_starts = starts_}, x_.View<float>(),
                                                   y_.View<float>(), workspace_, executor_);
  }

  const Executor& executor() const { return executor_; }
  size_t tokens() const { return starts_.back(); }
  ConstView y() const { return y_.View<float>(); }  // of the last run

 private:
  ForwardCall() = default;

  std::vector<Encoder> encoders_;
  std::vector<size_t> starts_;
  Executor executor_;
  Tensor x_;  // [tokens, d_model]
  Tensor y_;
  Workspace workspace_;
};

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_FORWARD_H_
