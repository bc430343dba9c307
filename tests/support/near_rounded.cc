// SPDX-License-Identifier: Apache-2.0
//
// Compares with the bounds of a reference.

#include "tests/support/near_rounded.h"

#include <cmath>

#include "tests/support/compare.h"

namespace encore {

testing::AssertionResult NearRounded(std::span<const float> got,
                                     const reference::Matrix<reference::Rounded>& want,
                                     double* worst) {
  if (got.size() != want.data.size()) {
    return testing::AssertionFailure()
           << got.size() << " elements, " << want.data.size() << " wanted ones";
  }
  for (const reference::Rounded& w : want.data) {
    if (!std::isfinite(w.value) || !std::isfinite(w.variance)) {
      return testing::AssertionFailure() << "the reference has " << w.value << " with variance "
                                         << w.variance << ", which would allow anything";
    }
  }
  return NearEach(
      got, [&](size_t i) { return want.data[i].value; },
      [&](size_t i) { return want.data[i].Bound(); }, worst);
}

std::vector<float> Elements(const TensorView<const float>& matrix) {
  std::vector<float> elements;
  elements.reserve(matrix.dim(0) * matrix.dim(1));
  for (size_t i = 0; i < matrix.dim(0); ++i) {
    for (size_t j = 0; j < matrix.dim(1); ++j) elements.push_back(matrix(i, j));
  }
  return elements;
}

}  // namespace encore
