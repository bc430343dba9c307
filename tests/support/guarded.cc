// SPDX-License-Identifier: Apache-2.0
//
// Finds what belongs to a view, and looks at the rest.

#include "tests/support/guarded.h"

#include <algorithm>
#include <bit>

namespace encore {

Guarded::Guarded(const Shape& shape, const Strides& strides) {
  ptrdiff_t low = 0;
  ptrdiff_t high = 0;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) continue;
    const ptrdiff_t span = static_cast<ptrdiff_t>(shape[i] - 1) * strides[i];
    (span < 0 ? low : high) += span;
  }
  memory_.assign(2 * kZone + static_cast<size_t>(high - low) + 1, std::bit_cast<float>(kFill));
  view_ = TensorView<float>(memory_.data() + static_cast<ptrdiff_t>(kZone) - low, shape, strides);
}

bool Guarded::Intact() const {
  std::vector<uint8_t> inside(memory_.size(), 0);
  Mark(0, view_.data() - memory_.data(), inside);
  for (size_t i = 0; i < memory_.size(); ++i) {
    if (inside[i] == 0 && std::bit_cast<uint32_t>(memory_[i]) != kFill) return false;
  }
  return true;
}

bool Guarded::Untouched() const {
  return std::all_of(memory_.begin(), memory_.end(),
                     [](float v) { return std::bit_cast<uint32_t>(v) == kFill; });
}

void Guarded::Mark(size_t axis, ptrdiff_t at, std::vector<uint8_t>& inside) const {
  if (axis == view_.rank()) {
    inside[static_cast<size_t>(at)] = 1;
    return;
  }
  for (size_t i = 0; i < view_.dim(axis); ++i, at += view_.stride(axis)) Mark(axis + 1, at, inside);
}

}  // namespace encore
