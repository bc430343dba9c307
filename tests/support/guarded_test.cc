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
    const size_t planes = shape.rank() == 3 ? shape[0] : 1;
    const size_t rows = shape.rank() >= 2 ? shape[shape.rank() - 2] : 1;
    const size_t columns = shape.rank() >= 1 ? shape[shape.rank() - 1] : 1;
    const auto stride = [&](size_t from_the_last) {
      return shape.rank() > from_the_last ? strides[shape.rank() - 1 - from_the_last] : 0;
    };
    for (size_t p = 0; p < planes; ++p) {
      for (size_t r = 0; r < rows; ++r) {
        for (size_t c = 0; c < columns; ++c) {
          inside.insert(view.data() + static_cast<ptrdiff_t>(p) * stride(2) +
                        static_cast<ptrdiff_t>(r) * stride(1) +
                        static_cast<ptrdiff_t>(c) * stride(0));
        }
      }
    }
    EXPECT_EQ(inside.size(), planes * rows * columns);
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
