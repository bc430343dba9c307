// SPDX-License-Identifier: Apache-2.0
//
// Compares results with a reference that carries its own bounds (reference/number.h).

#ifndef ENCORE_TESTS_SUPPORT_NEAR_ROUNDED_H_
#define ENCORE_TESTS_SUPPORT_NEAR_ROUNDED_H_

#include <span>
#include <vector>

#include "encore/tensor.h"
#include "gtest/gtest.h"
#include "reference/matmul.h"
#include "tests/support/results.h"  // IWYU pragma: export

namespace encore {

testing::AssertionResult NearRounded(std::span<const float> got,
                                     const reference::Matrix<reference::Rounded>& want,
                                     double* worst);

// The elements of a matrix with any strides, row by row.
std::vector<float> Elements(const TensorView<const float>& matrix);

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_NEAR_ROUNDED_H_
