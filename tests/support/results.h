// SPDX-License-Identifier: Apache-2.0
//
// Values that a test cannot go on without, and errors that it wants.

#ifndef ENCORE_TESTS_SUPPORT_RESULTS_H_
#define ENCORE_TESTS_SUPPORT_RESULTS_H_

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "encore/status.h"

namespace encore {

// The value. Where there is none the test ends and has failed: GoogleTest shows what the exception
// says, which is the place of the call and the Status's sentence.
template <typename T>
T Taken(Result<T> result, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (result.ok()) return *std::move(result);
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " +
                           result.status().message());
}

// Of an error of any code.
inline constexpr std::optional<ErrorCode> kAnyCode;

// Whether the status is an error of this code whose sentence has all of these parts: the thing's
// name, what was found, what was wanted.
inline testing::AssertionResult FailsWith(
    const Status& status, const std::vector<std::string>& parts,
    std::optional<ErrorCode> code = ErrorCode::kInvalidArgument) {
  if (status.ok()) return testing::AssertionFailure() << "there was no error";
  if (code && status.code() != *code) {
    return testing::AssertionFailure()
           << "the code is " << ErrorCodeName(status.code()) << ": " << status.message();
  }
  for (const std::string& part : parts) {
    if (status.message().find(part) == std::string::npos) {
      return testing::AssertionFailure() << "\"" << part << "\" is not in: " << status.message();
    }
  }
  return testing::AssertionSuccess();
}
template <typename T>
testing::AssertionResult FailsWith(const Result<T>& result, const std::vector<std::string>& parts,
                                   std::optional<ErrorCode> code = ErrorCode::kInvalidArgument) {
  return FailsWith(result.status(), parts, code);
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_RESULTS_H_
