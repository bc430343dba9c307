// SPDX-License-Identifier: Apache-2.0
//
// Runs an operation on rows over views of many layouts, which must change no bit of it.

#ifndef ENCORE_TESTS_OPS_ROW_LAYOUTS_H_
#define ENCORE_TESTS_OPS_ROW_LAYOUTS_H_

#include <cstddef>
#include <vector>

#include "encore/tensor.h"
#include "gtest/gtest.h"
#include "tests/support/guarded.h"

namespace encore {

// What the views below look at: 15 rows of 37.
inline const Shape kLayoutShape{3, 5, 37};

// op(x, y) of values [3, 5, 37] gives exactly `want`, from every layout to every layout (dense,
// transposed, apart, backwards) and in place, and writes nothing else.
template <typename Op>
void ExpectLayoutsChangeNoBit(const std::vector<float>& values, const std::vector<float>& want,
                              const Op& op) {
  using Strides = TensorView<float>::Strides;
  const Strides layouts[] = {{185, 37, 1}, {1, 3, 15}, {37, 111, 1}, {400, 74, 2}, {-185, -37, 1}};
  for (const Strides& in : layouts) {
    for (const Strides& out : layouts) {
      Guarded x(kLayoutShape, in);
      Guarded y(kLayoutShape, out);
      for (size_t i = 0; i < values.size(); ++i) {
        x.view()(i / 185, i / 37 % 5, i % 37) = values[i];
      }
      ASSERT_TRUE(op(x.view(), y.view()).ok());
      ASSERT_TRUE(op(x.view(), x.view()).ok());  // in place
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(y.view()(i / 185, i / 37 % 5, i % 37), want[i]);
        ASSERT_EQ(x.view()(i / 185, i / 37 % 5, i % 37), want[i]);
      }
      EXPECT_TRUE(y.Intact());
      EXPECT_TRUE(x.Intact());
    }
  }
}

}  // namespace encore

#endif  // ENCORE_TESTS_OPS_ROW_LAYOUTS_H_
