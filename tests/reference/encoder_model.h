// SPDX-License-Identifier: Apache-2.0
//
// An encoder with drawn weights, for tests of the encoder and for published hashes. Not here: what
// its results should be (encoder.h).

#ifndef ENCORE_TESTS_REFERENCE_ENCODER_MODEL_H_
#define ENCORE_TESTS_REFERENCE_ENCODER_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "encore/encoder.h"

namespace encore {

class EncoderModel {
 public:
  // Biases everywhere, or nowhere.
  explicit EncoderModel(const EncoderConfig& config, bool biases = true, uint32_t seed = 1);
  EncoderModel(const EncoderModel&) = delete;
  EncoderModel& operator=(const EncoderModel&) = delete;

  const EncoderConfig& config() const { return config_; }
  const EncoderWeights& weights() const { return weights_; }
  // For the active target; fails the test and ends it if there is an error.
  Encoder Make() const;

 private:
  ConstView Draw(const Shape& shape, float scale, float mean);

  EncoderConfig config_;
  EncoderWeights weights_;
  std::deque<std::vector<float>> memory_;
  uint32_t seed_;
};

// One forward pass with a workspace of its own. Ends the test on an error.
std::vector<float> Forward(const Encoder& encoder, const Batch& batch, const std::vector<float>& x,
                           const Executor& executor = {}, const Taps& taps = {});

// The sequence starts of these lengths.
std::vector<size_t> Starts(const std::vector<size_t>& lengths);

}  // namespace encore

#endif  // ENCORE_TESTS_REFERENCE_ENCODER_MODEL_H_
