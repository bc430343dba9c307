// SPDX-License-Identifier: Apache-2.0
//
// Floating-point numbers in error texts.

#ifndef ENCORE_ENGINE_BASE_NUMBER_TEXT_H_
#define ENCORE_ENGINE_BASE_NUMBER_TEXT_H_

#include <charconv>
#include <string>

namespace encore::inline v0_1::internal {

// As in the C locale. Nine digits identify any f32.
inline std::string NumberText(double number, int digits = 9) {
  char text[32];
  return {text,
          std::to_chars(text, text + sizeof(text), number, std::chars_format::general, digits).ptr};
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_NUMBER_TEXT_H_
