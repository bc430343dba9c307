// SPDX-License-Identifier: Apache-2.0
//
// Checks of what callers and files give, with sentences for people.

#ifndef ENCORE_ENGINE_BASE_INPUT_CHECK_H_
#define ENCORE_ENGINE_BASE_INPUT_CHECK_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "encore/status.h"
#include "engine/base/number_text.h"

namespace encore::inline v0_1::internal {

// Sequence i has the rows starts[i] .. starts[i + 1] - 1, of which there are at least `least`.
inline Status CheckStarts(std::string_view name, std::span<const size_t> starts, size_t least = 0) {
  if (starts.empty()) {
    return InvalidArgument(std::string(name) +
                           " is empty; wanted one entry a sequence, plus the end");
  }
  if (starts[0] != 0) {
    return InvalidArgument(std::string(name) + "[0] is " + std::to_string(starts[0]) +
                           "; wanted 0");
  }
  for (size_t i = 1; i < starts.size(); ++i) {
    if (starts[i] >= starts[i - 1] && starts[i] - starts[i - 1] >= least) continue;
    return InvalidArgument(
        std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(starts[i]) +
        " after " + std::to_string(starts[i - 1]) + "; wanted " +
        (least == 0 ? "entries that never decrease" : "at least one token a sequence"));
  }
  return {};
}

// Checked starts, of so many rows.
inline Status CheckEnd(std::string_view name, std::span<const size_t> starts, size_t rows,
                       std::string_view what) {
  if (starts.back() == rows) return {};
  return InvalidArgument(std::string(name) + " ends with " + std::to_string(starts.back()) +
                         "; wanted " + std::to_string(rows) + ", " + std::string(what));
}

// Numbers to multiply and divide by.
inline Status CheckScales(std::string_view name, std::span<const float> scales) {
  const auto bad = std::find_if(scales.begin(), scales.end(),
                                [](float s) { return !(s > 0 && std::isnormal(s)); });
  if (bad == scales.end()) return {};
  return InvalidArgument(std::string(name) + "[" + std::to_string(bad - scales.begin()) + "] is " +
                         NumberText(*bad) + "; wanted a finite, normal f32 number above 0");
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_INPUT_CHECK_H_
