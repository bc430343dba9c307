// SPDX-License-Identifier: Apache-2.0
//
// A shared library with a static encore of its own inside. It is built twice, as COPY=first and
// COPY=second; two_copies.cc loads both.

#include <string>

#include "encore/cpu.h"
#include "encore/ops.h"

#define CONCATENATE_(a, b) a##b
#define CONCATENATE(a, b) CONCATENATE_(a, b)
#define EXPORTED(name) \
  extern "C" __attribute__((visibility("default"))) const char* CONCATENATE(COPY, name)

namespace {

std::string answer;

}  // namespace

// Null, or why not.
EXPORTED(_set_target)(const char* name);
EXPORTED(_set_target)(const char* name) {
  const encore::Status status = encore::SetTarget(name);
  answer = status.message();
  return status.ok() ? nullptr : answer.c_str();
}

EXPORTED(_active_target)();
EXPORTED(_active_target)() {
  answer = encore::ActiveTarget();
  return answer.c_str();
}

// (1 + e) (1 - e) - 1 in billionths: -14.9 by a target with FMA, 0 by one without.
EXPORTED(_product)();
EXPORTED(_product)() {
  const float a[] = {1, 1 + 0x1p-13f};
  const float b[] = {-1, 1 - 0x1p-13f};
  float c = 1;
  const encore::Status status = encore::MatMul(encore::ConstView(a, encore::Shape(1, 2)),
                                               encore::ConstView(b, encore::Shape(2, 1)),
                                               encore::MutableView(&c, encore::Shape(1, 1)));
  answer = status.ok() ? std::to_string(c * 1e9f) : status.message();
  return answer.c_str();
}

// The target that every machine of this kind has.
EXPORTED(_last_target)();
EXPORTED(_last_target)() {
  answer = encore::SupportedTargets().back();
  return answer.c_str();
}
