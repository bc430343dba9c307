// SPDX-License-Identifier: Apache-2.0
//
// Compares results with a reference that carries its own bounds (reference/number.h); and
// FailsWith, for errors.

#ifndef ENCORE_TESTS_SUPPORT_NEAR_ROUNDED_H_
#define ENCORE_TESTS_SUPPORT_NEAR_ROUNDED_H_

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"
#include "encore/tensor.h"
#include "gtest/gtest.h"
#include "reference/matmul.h"

namespace encore {

testing::AssertionResult NearRounded(std::span<const float> got,
                                     const reference::Matrix<reference::Rounded>& want,
                                     double* worst);

// The elements of a matrix with any strides, row by row.
std::vector<float> Elements(const TensorView<const float>& matrix);

// Whether the status is an error of this code whose sentence has all of these parts: the thing's
// name, what was found, what was wanted.
inline testing::AssertionResult FailsWith(const Status& status,
                                          std::initializer_list<std::string_view> parts,
                                          ErrorCode code = ErrorCode::kInvalidArgument) {
  if (status.ok()) return testing::AssertionFailure() << "there was no error";
  if (status.code() != code) {
    return testing::AssertionFailure()
           << "the code is " << ErrorCodeName(status.code()) << ": " << status.message();
  }
  for (const std::string_view part : parts) {
    if (status.message().find(part) == std::string::npos) {
      return testing::AssertionFailure() << "\"" << part << "\" is not in: " << status.message();
    }
  }
  return testing::AssertionSuccess();
}
template <typename T>
testing::AssertionResult FailsWith(const Result<T>& result,
                                   std::initializer_list<std::string_view> parts,
                                   ErrorCode code = ErrorCode::kInvalidArgument) {
  return FailsWith(result.status(), parts, code);
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_NEAR_ROUNDED_H_
