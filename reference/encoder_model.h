// SPDX-License-Identifier: Apache-2.0
//
// An encoder with drawn weights, for tests of the encoder and for published hashes.

#ifndef ENCORE_REFERENCE_ENCODER_MODEL_H_
#define ENCORE_REFERENCE_ENCODER_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "encore/encoder.h"
#include "reference/layer_weights.h"
#include "reference/sequences.h"    // IWYU pragma: export
#include "reference/torch_stack.h"  // IWYU pragma: export

namespace encore {

class EncoderModel {
 public:
  explicit EncoderModel(const EncoderConfig& config, const WeightChoices& choices = {},
                        uint32_t seed = 1);
  explicit EncoderModel(const TorchStack& stack, const WeightChoices& choices = {},
                        uint32_t seed = 1)
      : EncoderModel(EncoderConfig(stack), choices, seed) {}
  // An entry of `choices` for each layer.
  EncoderModel(const EncoderConfig& config, const std::vector<WeightChoices>& choices,
               uint32_t seed);
  EncoderModel(const EncoderModel&) = delete;
  EncoderModel& operator=(const EncoderModel&) = delete;

  const EncoderConfig& config() const { return config_; }
  const EncoderWeights& weights() const { return weights_; }
  // For the active target; fails the test and ends it if there is an error.
  Encoder Make(const EncoderOptions& options = {}) const;

 private:
  WeightView Draw(const NewWeight& weight);

  EncoderConfig config_;
  EncoderWeights weights_;
  std::deque<std::vector<unsigned char>> memory_;
  uint32_t seed_;
};

// One forward pass with a workspace of its own. Ends the test on an error.
std::vector<float> Forward(const Encoder& encoder, const Batch& batch, const std::vector<float>& x,
                           const Executor& executor = {}, const Taps& taps = {});

// A weight of type F32, as the operations take it.
ConstView F32View(const WeightView& weight);

}  // namespace encore

#endif  // ENCORE_REFERENCE_ENCODER_MODEL_H_
