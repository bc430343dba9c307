// SPDX-License-Identifier: Apache-2.0
//
// RandomFloats. Tests draw models of millions of weights: a third of the time of some of them went
// into std::mt19937, so that its numbers are made here, 624 at a time and out of sanitizers' sight.

#include "reference/drawn.h"

#include <algorithm>

#if defined(__GNUC__)
#define ENCORE_NOT_SANITIZED __attribute__((no_sanitize("address", "undefined", "thread")))
#else
#define ENCORE_NOT_SANITIZED
#endif

namespace encore {
namespace {

constexpr size_t kWords = 624;
constexpr size_t kShift = 397;

// Mixes the upper bit of one word, the others of the next and a third one.
ENCORE_NOT_SANITIZED inline uint32_t Twist(uint32_t upper, uint32_t lower, uint32_t third) {
  const uint32_t y = (upper & 0x80000000u) | (lower & 0x7FFFFFFFu);
  return third ^ (y >> 1) ^ ((0u - (y & 1)) & 0x9908B0DFu);
}

// The Mersenne Twister (Matsumoto & Nishimura 1998), as std::mt19937 has it: the next numbers.
ENCORE_NOT_SANITIZED void Draw(uint32_t* state, uint32_t* numbers) {
  for (size_t i = 0; i < kWords - kShift; ++i) {
    state[i] = Twist(state[i], state[i + 1], state[i + kShift]);
  }
  for (size_t i = kWords - kShift; i < kWords - 1; ++i) {
    state[i] = Twist(state[i], state[i + 1], state[i + kShift - kWords]);
  }
  state[kWords - 1] = Twist(state[kWords - 1], state[0], state[kShift - 1]);
  for (size_t i = 0; i < kWords; ++i) {
    uint32_t y = state[i];
    y ^= y >> 11;
    y ^= y << 7 & 0x9D2C5680u;
    y ^= y << 15 & 0xEFC60000u;
    numbers[i] = y ^ y >> 18;
  }
}

// Four numbers make a float; 624 is a multiple of four. All is in integers but the last product of
// z, which is exact, and what follows, which is rounded once.
ENCORE_NOT_SANITIZED void Fill(uint32_t seed, double scale, double mean, size_t count, float* out) {
  uint32_t state[kWords];
  uint32_t numbers[kWords];
  state[0] = seed;
  for (size_t i = 1; i < kWords; ++i) {
    state[i] = 1812433253u * (state[i - 1] ^ state[i - 1] >> 30) + static_cast<uint32_t>(i);
  }
  for (size_t done = 0; done < count;) {
    Draw(state, numbers);
    const size_t end = std::min(count, done + kWords / 4);
    for (const uint32_t* n = numbers; done < end; ++done, n += 4) {
      const int64_t sum =
          int64_t{n[0]} + int64_t{n[1]} + int64_t{n[2]} + int64_t{n[3]} - (int64_t{1} << 33);
      const float z = 0x1.bb67aep-32f * static_cast<float>(sum);  // sqrt(3) / 2^32
      out[done] = static_cast<float>(mean + scale * static_cast<double>(z));
    }
  }
}

}  // namespace

std::vector<float> RandomFloats(size_t count, uint32_t seed, float scale, float mean) {
  std::vector<float> values(count);
  Fill(seed, static_cast<double>(scale), static_cast<double>(mean), count, values.data());
  return values;
}

}  // namespace encore
