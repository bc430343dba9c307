// SPDX-License-Identifier: Apache-2.0
//
// The random numbers of NumPy's RandomState(seed).rand, digit for digit, so that what encore draws
// can be followed along in NumPy.

#ifndef ENCORE_TOOLS_ENCORE_NUMPY_RANDOM_H_
#define ENCORE_TOOLS_ENCORE_NUMPY_RANDOM_H_

#include <cstdint>
#include <random>
#include <span>

#include "encore/tensor.h"
#include "tools/encore/failure.h"

namespace encore::tool {

// MT19937 (Matsumoto and Nishimura, 1998). std::mt19937's own seeding is the init_genrand that
// RandomState(seed) uses for integers of 32 bits, and the standard fixes every number of it.
class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed) : engine_(seed) {}

  // Uniform in [0, 1) with 53 random bits: MT19937's genrand_res53, RandomState.random_sample().
  double Next() {
    const uint32_t high = static_cast<uint32_t>(engine_()) >> 5;  // 27 bits
    const uint32_t low = static_cast<uint32_t>(engine_()) >> 6;   // 26 bits
    return (high * 67108864.0 + low) / 9007199254740992.0;        // (high 2^26 + low) / 2^53
  }

  // RandomState.rand(...) of this shape, drawn in row-major order, each number rounded to f32.
  // Throws Failure if the memory cannot be had.
  Tensor Rand(const Shape& shape) {
    Tensor tensor = NewTensor(shape);
    const auto numbers = std::span(static_cast<float*>(tensor.data()), tensor.size_bytes() / 4);
    for (float& number : numbers) number = static_cast<float>(Next());
    return tensor;
  }

 private:
  std::mt19937 engine_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_NUMPY_RANDOM_H_
