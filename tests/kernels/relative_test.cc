// SPDX-License-Identifier: Apache-2.0
//
// The kernels of relative embeddings on every SIMD target: each float where it belongs, to the bit.

#include "engine/kernels/relative.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

constexpr size_t kLdOut = 80;

size_t WholeSixteens(size_t n) { return (n + 15) / 16 * 16; }

// Indices by distance from -rows to cols + 16: that of the last query and the first key is `low`,
// and each step is 0 or 1. What lies behind the last key is wild.
struct Indices {
  Indices(size_t rows, size_t cols, int32_t low, size_t every) : zero(rows) {
    int32_t index = low;
    for (size_t i = 0; i < rows + cols + 16; ++i) {
      // Of the distance i - rows.
      const bool named = i >= 1 && i < rows + cols;
      if (named && i > 1 && (every == 1 || (i * 7 + i / 3) % every == 0)) ++index;
      all.push_back(named ? index : INT32_MIN / 2 + static_cast<int32_t>(i) * 12345);
    }
    highest = index;
  }
  const int32_t* at_zero() const { return all.data() + zero; }

  size_t zero;
  std::vector<int32_t> all;
  int32_t highest = 0;
};

template <class Body>
void ForSizes(Body body) {
  for (const size_t rows : {1, 2, 11, 12, 16, 33, 64}) {
    for (const size_t cols : {1, 4, 7, 15, 16, 17, 32, 40, 64}) {
      for (const size_t every : {1, 2, 5, 1000}) {
        SCOPED_TRACE(testing::Message() << rows << " queries, " << cols << " keys, " << every);
        body(rows, cols, Indices(rows, cols, 3, every));
      }
    }
  }
}

TEST(RelativeKernels, TermOfQueries) {
  ForSizes([](size_t rows, size_t cols, const Indices& indices) {
    const int32_t low = 1;
    const size_t ld = static_cast<size_t>(indices.highest - low) + 16;
    const std::vector<float> products = RandomFloats(rows * ld, 1, 1);
    const std::vector<float> add = RandomFloats(rows * kLdOut, 1, 2);
    for (const bool adds : {false, true}) {
      ForEachTarget([&](const std::string& /*target*/) {
        Guarded out(Shape{rows, WholeSixteens(cols)}, {kLdOut, 1});
        internal::GetRelativeKernels().of_queries({.products = products.data(),
                                                   .ld_products = ld,
                                                   .index = indices.at_zero(),
                                                   .low = low,
                                                   .add = adds ? add.data() : nullptr,
                                                   .ld_add = kLdOut,
                                                   .out = out.view().data(),
                                                   .ld_out = kLdOut,
                                                   .rows = rows,
                                                   .cols = cols});
        ASSERT_TRUE(out.Intact());
        for (size_t r = 0; r < rows; ++r) {
          for (size_t j = 0; j < cols; ++j) {
            const int32_t index = indices.all[indices.zero + j - r];
            const float product = products[r * ld + static_cast<size_t>(index - low)];
            ASSERT_EQ(out.view()(r, j), adds ? product + add[r * kLdOut + j] : product)
                << r << ", " << j;
          }
        }
      });
    }
  });
}

TEST(RelativeKernels, TermOfKeys) {
  ForSizes([](size_t rows, size_t cols, const Indices& indices) {
    const int32_t low = 3;
    const size_t ld = WholeSixteens(cols);
    const std::vector<float> products =
        RandomFloats((static_cast<size_t>(indices.highest - low) + 1) * ld, 1, 1);
    ForEachTarget([&](const std::string& /*target*/) {
      Guarded out(Shape{rows, WholeSixteens(cols)}, {kLdOut, 1});
      internal::GetRelativeKernels().of_keys({.products = products.data(),
                                              .ld_products = ld,
                                              .index = indices.at_zero(),
                                              .low = low,
                                              .add = nullptr,
                                              .ld_add = 0,
                                              .out = out.view().data(),
                                              .ld_out = kLdOut,
                                              .rows = rows,
                                              .cols = cols});
      ASSERT_TRUE(out.Intact());
      for (size_t r = 0; r < rows; ++r) {
        for (size_t j = 0; j < cols; ++j) {
          const int32_t index = indices.all[indices.zero + j - r];
          ASSERT_EQ(out.view()(r, j), products[static_cast<size_t>(index - low) * ld + j])
              << r << ", " << j;
        }
      }
    });
  });
}

}  // namespace
}  // namespace encore
