// SPDX-License-Identifier: Apache-2.0
//
// Random configurations, every switch of LayerConfig included, from a seed or a fuzzer's bytes.

#ifndef ENCORE_TESTS_SUPPORT_DRAWN_CONFIG_H_
#define ENCORE_TESTS_SUPPORT_DRAWN_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "reference/layer_weights.h"

namespace encore {

// All that is drawn comes from the seed or the bytes, in the same way everywhere.
class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}
  // Takes a byte for each number, four for those above 255. Where the bytes end, numbers go on from
  // a generator that all of the bytes seed: few bytes, changed at random, are enough for any draw.
  explicit Draw(std::string_view bytes) : bytes_(bytes), engine_(HashOf(bytes)) {}

  size_t Between(size_t low, size_t high) { return low + Next(high - low) % (high - low + 1); }
  bool Chance(size_t one_in) { return Next(one_in - 1) % one_in == 0; }
  uint32_t Seed() { return Next(UINT32_MAX); }

 private:
  static uint32_t HashOf(std::string_view bytes);
  uint32_t Next(size_t most);

  std::string_view bytes_;
  std::mt19937 engine_;
};

// kSmall: a layer is computed in microseconds, for those who draw millions.
enum class DrawnSizes : uint8_t { kUsual, kSmall };

// One or two layers, as torch's or with any switches.
EncoderConfig DrawConfig(Draw& draw, DrawnSizes sizes = DrawnSizes::kUsual);

// Which tensors each layer has, in which type.
std::vector<WeightChoices> DrawChoices(Draw& draw, const EncoderConfig& config);

// "d_model 24; 3 heads of 8, d_ff 70, gelu, gated, window 4, rotary; ...".
std::string Describe(const EncoderConfig& config);

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_DRAWN_CONFIG_H_
