// SPDX-License-Identifier: Apache-2.0
//
// Guarded: memory for outputs that shows writes where none belong. Comes with RandomFloats for
// inputs (reference/drawn.h).

#ifndef ENCORE_TESTS_SUPPORT_GUARDED_H_
#define ENCORE_TESTS_SUPPORT_GUARDED_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "encore/tensor.h"
#include "reference/drawn.h"  // IWYU pragma: export

namespace encore {

// Floats [offset, offset + shape and strides], with a red zone before and after. All of it, the
// elements included, starts as one and the same NaN.
class Guarded {
 public:
  using Strides = TensorView<float>::Strides;

  // Dense rows.
  explicit Guarded(const Shape& shape)
      : Guarded(shape, TensorView<float>(nullptr, shape).strides()) {}
  // Strides may be negative, and leave gaps.
  Guarded(const Shape& shape, const Strides& strides) {
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
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  const TensorView<float>& view() const { return view_; }
  std::vector<float>& memory() { return memory_; }

  // Whether all memory outside of the view is as it was.
  bool Intact() const {
    std::vector<bool> inside(memory_.size(), false);
    Mark(view_, inside);
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (!inside[i] && std::bit_cast<uint32_t>(memory_[i]) != kFill) return false;
    }
    return true;
  }
  // Whether the view is as well.
  bool Untouched() const {
    for (const float v : memory_) {
      if (std::bit_cast<uint32_t>(v) != kFill) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kZone = 64;
  static constexpr uint32_t kFill = 0x7FC0DEAD;  // a quiet NaN

  void Mark(const TensorView<float>& view, std::vector<bool>& inside) const {
    if (view.rank() == 0) {
      inside[static_cast<size_t>(view.data() - memory_.data())] = true;
      return;
    }
    for (size_t i = 0; i < view.dim(0); ++i) Mark(view[i], inside);
  }

  std::vector<float> memory_;
  TensorView<float> view_;
};

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_GUARDED_H_
