// SPDX-License-Identifier: Apache-2.0
//
// AxisLoop: walks N views of one shape together, with as few and as long inner runs as their
// strides allow.

#ifndef ENCORE_ENGINE_OPS_AXIS_LOOP_H_
#define ENCORE_ENGINE_OPS_AXIS_LOOP_H_

#include <array>
#include <cstddef>

#include "encore/tensor.h"

namespace encore::inline v0_1::internal {

template <size_t N>
class AxisLoop {
 public:
  using Offsets = std::array<ptrdiff_t, N>;  // in elements, one for each view

  struct Axis {
    size_t extent = 1;
    Offsets strides{};
  };

  // Axes are pushed from the outermost to the innermost. One that continues the axis before it, in
  // every view, is merged with it; an extent of 1 leaves no trace. Extents are not 0.
  void Push(const Axis& axis) {
    if (axis.extent == 1) return;
    if (rank_ > 0) {
      Axis& outer = axes_[rank_ - 1];
      bool continues = true;
      for (size_t v = 0; v < N; ++v) {
        continues =
            continues && outer.strides[v] == axis.strides[v] * static_cast<ptrdiff_t>(axis.extent);
      }
      if (continues) {
        outer.extent *= axis.extent;
        outer.strides = axis.strides;
        return;
      }
    }
    axes_[rank_++] = axis;
  }

  // Takes the innermost axis away, for the caller to walk by itself; one of extent 1 if none is
  // left.
  Axis Pop() { return rank_ == 0 ? Axis{} : axes_[--rank_]; }

  // Calls f(offsets) for every position along the axes that are left.
  template <class F>
  void ForEach(F f) const {
    std::array<size_t, Shape::kMaxRank> index{};
    Offsets offsets{};
    for (;;) {
      f(offsets);
      size_t a = rank_;
      for (; a > 0; --a) {
        const Axis& axis = axes_[a - 1];
        if (++index[a - 1] < axis.extent) {
          for (size_t v = 0; v < N; ++v) offsets[v] += axis.strides[v];
          break;
        }
        index[a - 1] = 0;
        const ptrdiff_t steps = static_cast<ptrdiff_t>(axis.extent - 1);
        for (size_t v = 0; v < N; ++v) offsets[v] -= axis.strides[v] * steps;
      }
      if (a == 0) return;
    }
  }

 private:
  size_t rank_ = 0;
  std::array<Axis, Shape::kMaxRank> axes_{};
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_OPS_AXIS_LOOP_H_
