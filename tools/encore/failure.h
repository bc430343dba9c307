// SPDX-License-Identifier: Apache-2.0
//
// How the command line fails: one exception that carries a sentence and the exit status, thrown
// anywhere in tools/encore and caught in main.cc alone. The library itself never throws; Check and
// Take turn its Status and Result into this.

#ifndef ENCORE_TOOLS_ENCORE_FAILURE_H_
#define ENCORE_TOOLS_ENCORE_FAILURE_H_

#include <stdexcept>
#include <string>
#include <utility>

#include "encore/status.h"
#include "encore/tensor.h"

namespace encore::tool {

// Exit statuses of the command.
inline constexpr int kExitOk = 0;
inline constexpr int kExitCheckFailed = 1;  // ran, and the result is wrong
inline constexpr int kExitBadInput = 2;     // bad usage or input, nothing was written
inline constexpr int kExitIncomplete = 3;   // ended early, part of the output was written

class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& sentence, int exit_status = kExitBadInput)
      : std::runtime_error(sentence), exit_status_(exit_status) {}
  int exit_status() const { return exit_status_; }

 private:
  int exit_status_;
};

// `context`, if given, is put before the library's sentence: "--weights: ...".
inline void Check(const Status& status, const std::string& context = "") {
  if (status.ok()) return;
  throw Failure(context.empty() ? status.message() : context + ": " + status.message());
}

// Whether an output's file or folder has appeared. From then on no failure has exit status 2.
inline bool output_written = false;

// Check for what makes an output appear.
inline void CheckWritten(const Status& status, const std::string& context = "") {
  Check(status, context);
  output_written = true;
}

template <typename T>
T Take(Result<T> result, const std::string& context = "") {
  Check(result.status(), context);
  return *std::move(result);
}

// A tensor of f32 with zeros; throws Failure if the memory cannot be had.
inline Tensor NewTensor(const Shape& shape, const std::string& context = "") {
  return Take(Tensor::Create(DType::kF32, shape), context);
}

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_FAILURE_H_
