// SPDX-License-Identifier: Apache-2.0
//
// Drawn inputs and hashes of outputs, the same on every machine.

#ifndef ENCORE_REFERENCE_DRAWN_H_
#define ENCORE_REFERENCE_DRAWN_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace encore {

// Floats of this standard deviation and mean, of nearly normal distribution (sums of four uniform
// ones, so at most 3.5 deviations off): for a seed the same on every machine.
std::vector<float> RandomFloats(size_t count, uint32_t seed, float scale = 1, float mean = 0);

// FNV-1a over the bits, for promises of equal bits where keeping all outputs would be too much.
inline uint64_t HashBits(std::span<const float> values, uint64_t hash = 0xCBF29CE484222325u) {
  for (const float value : values) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (bits >> shift & 0xFF)) * 0x100000001B3u;
    }
  }
  return hash;
}

}  // namespace encore

#endif  // ENCORE_REFERENCE_DRAWN_H_
