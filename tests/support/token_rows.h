// SPDX-License-Identifier: Apache-2.0
//
// Random vectors of tokens, for tests of late interaction.

#ifndef ENCORE_TESTS_SUPPORT_TOKEN_ROWS_H_
#define ENCORE_TESTS_SUPPORT_TOKEN_ROWS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "encore/max_sim.h"
#include "tests/support/compare.h"

namespace encore {

// Texts of so many rows of random vectors of length 1.
struct TokenRows {
  TokenRows(const std::vector<size_t>& lengths, size_t dimensions, uint32_t seed)
      : width(dimensions), starts{0} {
    for (const size_t length : lengths) starts.push_back(starts.back() + length);
    floats = RandomFloats(starts.back() * width, seed);
    for (size_t r = 0; r < starts.back(); ++r) {
      double squares = 0;
      for (size_t c = 0; c < width; ++c) squares += std::pow(floats[r * width + c], 2);
      for (size_t c = 0; c < width; ++c) {
        floats[r * width + c] = static_cast<float>(floats[r * width + c] / std::sqrt(squares));
      }
    }
  }
  ConstView view() const { return ConstView(floats.data(), Shape(starts.back(), width)); }
  RowGroups groups() const { return {view(), starts}; }
  size_t texts() const { return starts.size() - 1; }

  size_t width;
  std::vector<size_t> starts;
  std::vector<float> floats;
};

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_TOKEN_ROWS_H_
