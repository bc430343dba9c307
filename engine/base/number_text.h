// SPDX-License-Identifier: Apache-2.0
//
// Floating-point numbers in error sentences. Not here: integers (std::to_string).

#ifndef ENCORE_ENGINE_BASE_NUMBER_TEXT_H_
#define ENCORE_ENGINE_BASE_NUMBER_TEXT_H_

#include <cstdio>
#include <string>

namespace encore::inline v0_1::internal {

// Nine digits at most: short, however large or small the number is, and apart from any other f32.
inline std::string NumberText(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", number);
  return text;
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_NUMBER_TEXT_H_
