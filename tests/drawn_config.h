// SPDX-License-Identifier: Apache-2.0
//
// Random configurations, every switch of LayerConfig included, from a seed. Not here: weights
// (reference/encoder_model.h), batches.

#ifndef ENCORE_TESTS_DRAWN_CONFIG_H_
#define ENCORE_TESTS_DRAWN_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "tests/reference/layer_weights.h"

namespace encore {

// All that is drawn comes from the seed, in the same way everywhere.
class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}
  size_t Between(size_t low, size_t high) { return low + engine_() % (high - low + 1); }
  bool Chance(size_t one_in) { return engine_() % one_in == 0; }
  uint32_t Seed() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

// One or two layers, as torch's or with any switches.
EncoderConfig DrawConfig(Draw& draw);

// Which tensors each layer has, in which type.
std::vector<WeightChoices> DrawChoices(Draw& draw, const EncoderConfig& config);

// "d_model 24; 3 heads of 8, d_ff 70, gelu, gated, window 4, rotary; ...".
std::string Describe(const EncoderConfig& config);

}  // namespace encore

#endif  // ENCORE_TESTS_DRAWN_CONFIG_H_
