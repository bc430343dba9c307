// SPDX-License-Identifier: Apache-2.0
//
// Encoders that are drawn for the fuzz target `encoder`: a configuration with every switch, weights
// of every type and layout, options; and sometimes one thing in them that Create has to refuse.
// tests/support/drawn_config.h draws the configuration.

#ifndef ENCORE_TESTS_FUZZ_DRAWN_ENCODER_H_
#define ENCORE_TESTS_FUZZ_DRAWN_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

#include "encore/encoder.h"
#include "reference/layer_weights.h"
#include "tests/fuzz/drawn_views.h"

namespace encore::fuzz {

class DrawnEncoder {
 public:
  explicit DrawnEncoder(Draw& draw);
  DrawnEncoder(const DrawnEncoder&) = delete;
  DrawnEncoder& operator=(const DrawnEncoder&) = delete;

  const EncoderConfig& config() const { return config_; }
  const EncoderWeights& weights() const { return weights_; }
  const EncoderOptions& options() const { return options_; }
  // What Create has to refuse, or "".
  std::string_view fault() const { return fault_; }
  // Whether Create may refuse the weights' numbers: integers have no NaN and no infinity.
  bool numbers_may_be_refused() const {
    return IsInteger(options_.precision) && kind_ != Numbers::kTame;
  }
  // Whether numbers are such that results lie near exact ones, which the reference can compute.
  bool has_reference() const { return has_reference_; }

 private:
  void DrawExtremes(Draw& draw);
  WeightView DrawWeight(Draw& draw, const NewWeight& weight);
  // Scales of int8 matrices, and now and then of products' inputs.
  void DrawScales(Draw& draw);
  void DrawOptions(Draw& draw);
  void SpoilConfig(Draw& draw);
  void SpoilWeights(Draw& draw);

  template <typename T, typename FromFloat>
  WeightView Store(std::deque<DrawnView<T>>& memory, Draw& draw, DType type, const Shape& shape,
                   const FromFloat& from_float);

  EncoderConfig config_;
  EncoderWeights weights_;
  EncoderOptions options_;
  std::string_view fault_;
  bool has_reference_ = true;
  NumberSource source_;
  Numbers kind_ = Numbers::kTame;
  std::deque<DrawnView<float>> floats_;
  std::deque<DrawnView<double>> doubles_;
  std::deque<DrawnView<uint16_t>> halves_;
  std::deque<DrawnView<int8_t>> bytes_;
};

}  // namespace encore::fuzz

#endif  // ENCORE_TESTS_FUZZ_DRAWN_ENCODER_H_
