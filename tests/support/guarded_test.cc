// SPDX-License-Identifier: Apache-2.0
//
// Guarded finds a write to any float outside of its view, and to none inside.

#include "tests/support/guarded.h"

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace encore {
namespace {

TEST(Guarded, IsIntactUntilAFloatOutsideOfTheViewIsWritten) {
  const std::pair<Shape, Guarded::Strides> views[] = {
      {Shape(), {}},         {Shape(5), {1}},        {Shape(4), {-3}},
      {Shape(3, 4), {6, 1}}, {Shape(3, 4), {1, -5}}, {Shape(2, 3, 2), {20, 4, 2}},
      {Shape(3, 0), {4, 1}}};
  for (const auto& [shape, strides] : views) {
    Guarded memory(shape, strides);
    const TensorView<float>& view = memory.view();
    std::set<const float*> inside;
    // Of three axes, the first of which may be missing.
    size_t extents[3] = {1, 1, 1};
    ptrdiff_t steps[3] = {};
    for (size_t i = 0; i < shape.rank(); ++i) {
      extents[3 - shape.rank() + i] = shape[i];
      steps[3 - shape.rank() + i] = strides[i];
    }
    for (size_t i = 0; i < extents[0]; ++i) {
      for (size_t j = 0; j < extents[1]; ++j) {
        for (size_t k = 0; k < extents[2]; ++k) {
          inside.insert(view.data() + static_cast<ptrdiff_t>(i) * steps[0] +
                        static_cast<ptrdiff_t>(j) * steps[1] +
                        static_cast<ptrdiff_t>(k) * steps[2]);
        }
      }
    }
    EXPECT_EQ(inside.size(), extents[0] * extents[1] * extents[2]);
    EXPECT_TRUE(memory.Untouched());
    for (float& element : memory.memory()) {
      const float before = std::exchange(element, 1.0f);
      EXPECT_FALSE(memory.Untouched());
      EXPECT_EQ(memory.Intact(), inside.count(&element) == 1)
          << shape.ToString() << ", " << &element - view.data() << " floats after the first";
      element = before;
    }
    EXPECT_TRUE(memory.Intact());
  }
}

}  // namespace
}  // namespace encore
