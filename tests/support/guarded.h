// SPDX-License-Identifier: Apache-2.0
//
// Guarded: memory for outputs that shows writes where none belong. Comes with RandomFloats for
// inputs (reference/drawn.h).

#ifndef ENCORE_TESTS_SUPPORT_GUARDED_H_
#define ENCORE_TESTS_SUPPORT_GUARDED_H_

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
  Guarded(const Shape& shape, const Strides& strides);
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  const TensorView<float>& view() const { return view_; }
  std::vector<float>& memory() { return memory_; }

  // Whether all memory outside of the view is as it was.
  bool Intact() const;
  // Whether the view is as well.
  bool Untouched() const;

 private:
  static constexpr size_t kZone = 64;
  static constexpr uint32_t kFill = 0x7FC0DEAD;  // a quiet NaN

  // Marks the elements that have these places on the axes before `axis`, of which the first is
  // inside[at].
  void Mark(size_t axis, ptrdiff_t at, std::vector<uint8_t>& inside) const;

  std::vector<float> memory_;
  TensorView<float> view_;
};

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_GUARDED_H_
