// SPDX-License-Identifier: Apache-2.0
//
// The elementwise operations of encore/ops.h on views of all kinds, on every SIMD target; and what
// they refuse.

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "encore/ops.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using Strides = TensorView<float>::Strides;

struct Function {
  const char* name;
  Status (*run)(ConstView, MutableView);
};
constexpr Function kFunctions[] = {{"exp", &Exp},   {"tanh", &Tanh},          {"relu", &Relu},
                                   {"gelu", &Gelu}, {"gelu_tanh", &GeluTanh}, {"silu", &Silu}};

const reference::Accuracy& AccuracyOf(const std::string& name) {
  for (const reference::Accuracy& a : reference::kAccuracies) {
    if (a.name == name) return a;
  }
  ADD_FAILURE() << name;
  return reference::kAccuracies[0];
}

template <typename T>
std::vector<float> Elements(const TensorView<T>& view) {
  if (view.rank() == 0) return {view()};
  std::vector<float> all;
  for (size_t i = 0; i < view.dim(0); ++i) {
    for (const float v : Elements(view[i])) all.push_back(v);
  }
  return all;
}

TEST(Elementwise, RightForAllSizes) {
  ForEachTarget([](const std::string& target) {
    for (const Function& function : kFunctions) {
      SCOPED_TRACE(function.name);
      const reference::Accuracy& accuracy = AccuracyOf(function.name);
      const double promise = reference::TargetHasFma(target) ? accuracy.ulps : accuracy.ulps_no_fma;
      double worst = 0;
      for (const size_t n : {0, 1, 2, 15, 16, 17, 31, 33, 64, 100, 255, 256, 257, 1000}) {
        const std::vector<float> x = RandomFloats(n, static_cast<uint32_t>(n), 4.0f);
        Guarded y(Shape{n});
        const Status status = function.run(ConstView(x.data(), Shape{n}), y.view());
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_TRUE(y.Intact());
        for (size_t i = 0; i < n; ++i) {
          const double exact = accuracy.exact(static_cast<double>(x[i]));
          const double ulps = reference::UlpError(y.view()(i), exact);
          ASSERT_TRUE(ulps <= promise)
              << "[" << i << "] of " << n << ": " << y.view()(i) << ", wanted " << exact;
          worst = std::max(worst, ulps);
        }
      }
      std::printf("%-9s %-9s %.3f ulp (promise: %.2f)\n", function.name, target.c_str(), worst,
                  promise);
    }
  });
}

// Shapes and strides of inputs and outputs, each paired with each.
const std::vector<Strides>& Layouts() {  // of [3, 5, 37]
  static const std::vector<Strides> layouts = {
      {185, 37, 1},   // dense
      {1, 3, 15},     // all axes reversed
      {400, 74, 2},   // gaps
      {185, 1, 5},    // inner axes exchanged
      {-185, 37, -1}  // backwards
  };
  return layouts;
}

TEST(Elementwise, StridesChangeNoBit) {
  const Shape shape{3, 5, 37};
  ForEachTarget([&](const std::string&) {
    for (const Function& function : kFunctions) {
      SCOPED_TRACE(function.name);
      const std::vector<float> values = RandomFloats(3 * 5 * 37, 7, 3.0f);
      std::vector<float> want(values.size());
      ASSERT_TRUE(function.run(ConstView(values.data(), shape), {want.data(), shape}).ok());
      for (const Strides& in : Layouts()) {
        Guarded x(shape, in);
        size_t at = 0;
        for (size_t i = 0; i < 3; ++i) {
          for (size_t j = 0; j < 5; ++j) {
            for (size_t k = 0; k < 37; ++k) x.view()(i, j, k) = values[at++];
          }
        }
        for (const Strides& out : Layouts()) {
          Guarded y(shape, out);
          ASSERT_TRUE(function.run(x.view(), y.view()).ok());
          EXPECT_TRUE(SameBits(Elements(y.view()), want));
          EXPECT_TRUE(y.Intact());
        }
        ASSERT_TRUE(function.run(x.view(), x.view()).ok());  // in place
        EXPECT_TRUE(SameBits(Elements(x.view()), want));
        EXPECT_TRUE(x.Intact());
      }
    }
  });
}

TEST(Elementwise, ScalarsBroadcastInputsAndEmptyViews) {
  const float x = 1.0f;
  float y = 0;
  ASSERT_TRUE(Relu(ConstView(&x, Shape()), MutableView(&y, Shape())).ok());
  EXPECT_EQ(y, 1.0f);
  // An input may repeat itself.
  std::vector<float> many(12, -1.0f);
  ASSERT_TRUE(Relu(ConstView(&x, Shape{3, 4}, Strides{}), {many.data(), Shape{3, 4}}).ok());
  EXPECT_EQ(many, std::vector<float>(12, 1.0f));
  EXPECT_TRUE(Exp(ConstView(nullptr, Shape{0, 4}), MutableView(nullptr, Shape{0, 4})).ok());
  EXPECT_TRUE(Add(ConstView(nullptr, Shape{4, 0}), ConstView(nullptr, Shape{4, 0}),
                  MutableView(nullptr, Shape{4, 0}))
                  .ok());
}

TEST(Elementwise, AddInAllLayouts) {
  const Shape shape{3, 5, 37};
  ForEachTarget([&](const std::string&) {
    for (const Strides& sa : Layouts()) {
      for (const Strides& sb : Layouts()) {
        Guarded a(shape, sa);
        Guarded b(shape, sb);
        Guarded c(shape, sb);
        std::vector<float> want;
        float value = 0.25f;
        for (size_t i = 0; i < 3; ++i) {
          for (size_t j = 0; j < 5; ++j) {
            for (size_t k = 0; k < 37; ++k) {
              a.view()(i, j, k) = value;
              b.view()(i, j, k) = 1e-3f * value * value;
              want.push_back(value + 1e-3f * value * value);
              value += 0.37f;
            }
          }
        }
        ASSERT_TRUE(Add(a.view(), b.view(), c.view()).ok());
        EXPECT_TRUE(SameBits(Elements(c.view()), want));
        EXPECT_TRUE(c.Intact());
        ASSERT_TRUE(Add(a.view(), b.view(), a.view()).ok());
        EXPECT_TRUE(SameBits(Elements(a.view()), want));
        EXPECT_TRUE(a.Intact());
        ASSERT_TRUE(Add(b.view(), b.view(), b.view()).ok());
        EXPECT_TRUE(b.Intact());
      }
    }
  });
}

// Fails unless the call is refused with a sentence that contains all of the words.
void ExpectRefused(const Status& status, const std::vector<std::string>& words) {
  EXPECT_TRUE(FailsWith(status, words));
}

TEST(Elementwise, RefusesBadViewsAndLeavesOutputsAlone) {
  const std::vector<float> x(64, 1.0f);
  Guarded y(Shape{4, 8});
  const ConstView good(x.data(), Shape{4, 8});
  ExpectRefused(Exp(ConstView(x.data(), Shape{8, 4}), y.view()), {"y", "[4, 8]", "[8, 4]"});
  ExpectRefused(Exp(ConstView(x.data(), Shape{32}), y.view()), {"y", "[4, 8]", "[32]"});
  ExpectRefused(Exp(ConstView(nullptr, Shape{4, 8}), y.view()), {"x", "no data"});
  ExpectRefused(Exp(good, MutableView(nullptr, Shape{4, 8})), {"y", "no data"});
  ExpectRefused(Exp(ConstView(), MutableView()), {"x", "no data"});
  const MutableView repeats(y.view().data(), Shape{4, 8}, Strides{0, 1});
  ExpectRefused(Exp(good, repeats), {"y", "stride 0", "axis 0"});
  const size_t huge = size_t{1} << 40;
  ExpectRefused(Exp(ConstView(x.data(), Shape{huge, huge}), y.view()), {"x", "more elements"});
  ExpectRefused(
      Exp(ConstView(x.data(), Shape{huge, huge}), MutableView(y.view().data(), Shape{huge, huge})),
      {"x"});
  ExpectRefused(Add(good, ConstView(x.data(), Shape{8, 4}), y.view()), {"b", "[8, 4]"});
  ExpectRefused(Add(good, good, MutableView(y.view().data(), Shape{2, 16})), {"c", "[2, 16]"});
  EXPECT_TRUE(y.Untouched());
}

TEST(Elementwise, RefusesOverlapThatIsCertain) {
  std::vector<float> memory(200, 0.5f);
  const std::vector<float> before = memory;
  const ConstView x(memory.data(), Shape{8, 8});
  ExpectRefused(Exp(x, MutableView(memory.data() + 1, Shape{8, 8})), {"y", "shares memory", "x"});
  ExpectRefused(Exp(x, MutableView(memory.data(), Shape{8, 8}).Transposed()), {"shares memory"});
  ExpectRefused(Add(ConstView(memory.data() + 64, Shape{8, 8}), x,
                    MutableView(memory.data() + 100, Shape{8, 8})),
                {"c", "shares memory", "a"});
  EXPECT_EQ(memory, before);
  // Even columns into odd ones share nothing, nor do neighbours.
  const ConstView even(memory.data(), Shape{8, 4}, Strides{8, 2});
  EXPECT_TRUE(Exp(even, MutableView(memory.data() + 1, Shape{8, 4}, Strides{8, 2})).ok());
  EXPECT_TRUE(Exp(x, MutableView(memory.data() + 64, Shape{8, 8})).ok());
}

}  // namespace
}  // namespace encore
