// SPDX-License-Identifier: Apache-2.0
//
// Encoders with drawn weights, and forward passes over drawn input, ready to be timed. Not here:
// sizes (models.h), threads (threads.h) and timing (samples.h).

#ifndef ENCORE_BENCH_MEASURE_FORWARD_H_
#define ENCORE_BENCH_MEASURE_FORWARD_H_

#include <cstddef>
#include <vector>

#include "bench/measure/models.h"
#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/workspace.h"
#include "tests/reference/layer_weights.h"

namespace encore::bench {

// f32, uniform in [low, high), the same numbers each time.
Result<Tensor> DrawTensor(const Shape& shape, float low, float high);

// Memory that keeps a copy out of the last-level cache takes this many copies of `bytes` each, used
// in turn: together they are over twice that cache.
size_t CopiesForCold(size_t bytes);

// `count` encoders. The numbers are the same in all layers; each is packed
// into a place of its own.
Result<std::vector<Encoder>> MakeEncoders(const EncoderConfig& config, size_t count,
                                          const WeightChoices& choices = {},
                                          Precision precision = Precision::kF32);
inline Result<std::vector<Encoder>> MakeEncoders(const Model& model, size_t layers, size_t count,
                                                 Precision precision = Precision::kF32) {
  return MakeEncoders(ConfigOf(model, layers), count, {}, precision);
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
