// SPDX-License-Identifier: Apache-2.0
//
// LayerNorm and RMSNorm on every SIMD target, through the public operations and, for what these do
// not have, the kernels.

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "encore/ops.h"
#include "engine/kernels/norm.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/layer_norm.h"
#include "reference/rms_norm.h"
#include "tests/ops/row_layouts.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using reference::Matrix;
using reference::Rounded;
using Strides = TensorView<float>::Strides;

// What both have in common. RMSNorm's operation takes no bias; its kernel does.
struct Norm {
  const char* name;
  bool has_bias;
  Status (*apply)(ConstView x, ConstView weight, ConstView bias, double epsilon, MutableView y);
  Matrix<Rounded> (*reference)(Matrix<Rounded> x, ConstView weight, ConstView bias, double epsilon);
  void (*internal::NormKernels::*kernel)(const internal::NormArgs& args);
};

const Norm kNorms[] = {
    {"layer_norm", true, &LayerNorm, &reference::LayerNorm<Rounded>,
     &internal::NormKernels::layer_norm},
    {"rms_norm", false,
     [](ConstView x, ConstView weight, ConstView, double epsilon, MutableView y) {
       return RmsNorm(x, weight, epsilon, y);
     },
     &reference::RmsNorm<Rounded>, &internal::NormKernels::rms_norm},
};

template <class Run>
void ForEachNorm(Run run) {
  for (const Norm& norm : kNorms) {
    SCOPED_TRACE(norm.name);
    ForEachTarget([&](const std::string& target) { run(norm, target); });
  }
}

TEST(Norm, RightForAllSizesAndScales) {
  ForEachNorm([](const Norm& norm, const std::string& target) {
    double worst = 0;
    for (const size_t cols : {1, 2, 8, 15, 16, 17, 31, 32, 33, 64, 100, 768, 1000}) {
      const std::vector<float> weight = RandomFloats(cols, 1, 0.2f, 1.0f);
      const std::vector<float> bias = RandomFloats(cols, 2, 0.5f);
      for (const size_t rows : {1, 2, 3, 4, 5, 9, 21}) {
        for (const float scale : {1e-6f, 1.0f, 60.0f}) {
          for (const bool plain : {false, true}) {
            const std::vector<float> x =
                RandomFloats(rows * cols, static_cast<uint32_t>(cols + rows), scale, 0.5f * scale);
            const Shape shape{rows, cols};
            const ConstView w = plain ? ConstView() : ConstView(weight.data(), Shape{cols});
            const ConstView b =
                plain || !norm.has_bias ? ConstView() : ConstView(bias.data(), Shape{cols});
            Guarded y(shape);
            const Status status = norm.apply(ConstView(x.data(), shape), w, b, 1e-5, y.view());
            ASSERT_TRUE(status.ok()) << status.message();
            ASSERT_TRUE(y.Intact());
            const Matrix<Rounded> want =
                norm.reference(Matrix<Rounded>(ConstView(x.data(), shape)), w, b, 1e-5);
            ASSERT_TRUE(NearEach(
                std::span<const float>(y.view().data(), rows * cols),
                [&](size_t i) { return want.data[i].value; },
                [&](size_t i) { return want.data[i].Bound(); }, &worst))
                << rows << " x " << cols << ", scale " << scale;
          }
        }
      }
    }
    std::printf("%-10s %-9s worst error: %.3f of its bound\n", norm.name, target.c_str(), worst);
  });
}

// Every combination of what may be missing; the residual is added last, with one rounding.
TEST(Norm, KernelsAddBiasAndResidual) {
  ForEachNorm([](const Norm& norm, const std::string&) {
    const auto kernel = internal::GetNormKernels().*norm.kernel;
    for (const size_t cols : {1, 8, 15, 64, 100, 530}) {
      for (const size_t rows : {1, 3, 4, 13}) {
        const Shape shape{rows, cols};
        const Strides strides{static_cast<ptrdiff_t>(cols) + 3, 1};
        const std::vector<float> x = RandomFloats(rows * cols, 1, 2);
        const std::vector<float> weight = RandomFloats(cols, 2, 0.2f, 1);
        const std::vector<float> bias = RandomFloats(cols, 3);
        const std::vector<float> residual = RandomFloats(rows * cols, 4);
        for (const int given : {0, 1, 2, 3}) {
          const bool has_weight = (given & 1) != 0;
          const bool has_bias = (given & 2) != 0;
          Guarded y(shape, strides);
          internal::NormArgs args{.x = x.data(),
                                  .ldx = cols,
                                  .weight = has_weight ? weight.data() : nullptr,
                                  .bias = has_bias ? bias.data() : nullptr,
                                  .epsilon = 1e-6,
                                  .residual = nullptr,
                                  .ld_residual = 0,
                                  .y = y.view().data(),
                                  .ldy = cols + 3,
                                  .rows = rows,
                                  .cols = cols};
          kernel(args);
          ASSERT_TRUE(y.Intact());
          const ConstView w = has_weight ? ConstView(weight.data(), Shape{cols}) : ConstView();
          const ConstView b = has_bias ? ConstView(bias.data(), Shape{cols}) : ConstView();
          const Matrix<Rounded> want =
              norm.reference(Matrix<Rounded>(ConstView(x.data(), shape)), w, b, 1e-6);
          std::vector<float> sums(rows * cols);
          for (size_t i = 0; i < sums.size(); ++i) {
            const float value = y.view()(i / cols, i % cols);
            ASSERT_LE(std::fabs(double{value} - want.data[i].value), want.data[i].Bound());
            sums[i] = value + residual[i];
          }
          // To another place, over the residual, and over x.
          Guarded over(shape, strides);
          args.residual = residual.data();
          args.ld_residual = cols;
          args.y = over.view().data();
          kernel(args);
          ASSERT_TRUE(over.Intact());
          for (size_t i = 0; i < sums.size(); ++i) {
            ASSERT_EQ(over.view()(i / cols, i % cols), sums[i]) << i;
          }
          std::vector<float> in_place = residual;
          args.ldy = cols;
          args.residual = args.y = in_place.data();
          kernel(args);
          EXPECT_TRUE(SameBits(in_place, sums));
          in_place = x;
          args.residual = residual.data();
          args.x = args.y = in_place.data();
          kernel(args);
          EXPECT_TRUE(SameBits(in_place, sums));
        }
      }
    }
  });
}

TEST(RmsNorm, MeanOfSquaresIsOneWithoutAWeight) {
  const std::vector<float> x = RandomFloats(1000, 4, 3.0f, 1.0f);
  ForEachTarget([&](const std::string&) {
    std::vector<float> y(1000);
    ASSERT_TRUE(RmsNorm(ConstView(x.data(), Shape{1000}), {}, 0, {y.data(), Shape{1000}}).ok());
    double squares = 0;
    for (const float v : y) squares += double{v} * double{v};
    EXPECT_NEAR(squares / 1000, 1, 4e-6);
  });
}

TEST(RmsNorm, ZerosStayZeros) {
  ForEachTarget([](const std::string&) {
    for (const double epsilon : {0.0, 1e-6}) {
      const std::vector<float> x(3 * 37, 0.0f);
      std::vector<float> y(3 * 37, 1.0f);
      const Shape shape{3, 37};
      ASSERT_TRUE(RmsNorm({x.data(), shape}, {}, epsilon, {y.data(), shape}).ok());
      EXPECT_TRUE(SameBits(y, x));
    }
  });
}

TEST(LayerNorm, MeanZeroAndVarianceOneWithoutParameters) {
  const std::vector<float> x = RandomFloats(1000, 4, 3.0f, 100.0f);
  ForEachTarget([&](const std::string&) {
    std::vector<float> y(1000);
    ASSERT_TRUE(
        LayerNorm(ConstView(x.data(), Shape{1000}), {}, {}, 0, {y.data(), Shape{1000}}).ok());
    double sum = 0;
    double squares = 0;
    for (const float v : y) {
      sum += static_cast<double>(v);
      squares += static_cast<double>(v) * static_cast<double>(v);
    }
    // The mean of x is right to an ulp of 100, 8e-6; y is x - mean over 3.
    EXPECT_NEAR(sum / 1000, 0, 4e-6);
    EXPECT_NEAR(squares / 1000, 1, 4e-6);
  });
}

TEST(Norm, StridesRowsAndTargetsChangeNoBit) {
  const Shape& shape = kLayoutShape;
  const std::vector<float> values = RandomFloats(3 * 5 * 37, 11, 2.0f);
  const std::vector<float> parameters = RandomFloats(4 * 37, 12);
  const ConstView weight(parameters.data(), Shape{37});
  const ConstView bias(parameters.data() + 37, Shape{37});
  std::map<std::string, std::vector<float>> firsts;
  ForEachNorm([&](const Norm& norm, const std::string& target) {
    std::vector<float>& first = firsts[norm.name];
    std::vector<float> want(values.size());
    ASSERT_TRUE(
        norm.apply(ConstView(values.data(), shape), weight, bias, 1e-5, {want.data(), shape}).ok());
    if (reference::TargetHasFma(target)) {
      if (first.empty()) first = want;
      EXPECT_TRUE(SameBits(want, first));
    }
    for (size_t r = 0; r < 15; ++r) {  // each row alone
      std::vector<float> alone(37);
      ASSERT_TRUE(norm.apply(ConstView(&values[r * 37], Shape{37}), weight, bias, 1e-5,
                             {alone.data(), Shape{37}})
                      .ok());
      EXPECT_TRUE(SameBits(alone, {&want[r * 37], 37}));
    }
    // Parameters with strides of their own: 2 apart, and backwards.
    std::vector<float> apart(74);
    std::vector<float> reversed(37);
    for (size_t i = 0; i < 37; ++i) {
      apart[2 * i] = weight(i);
      reversed[36 - i] = bias(i);
    }
    const ConstView weight2(apart.data(), Shape{37}, Strides{2});
    const ConstView bias2(reversed.data() + 36, Shape{37}, Strides{-1});
    ExpectLayoutsChangeNoBit(values, want, [&](ConstView x, MutableView y) {
      return norm.apply(x, weight, bias, 1e-5, y);
    });
    ExpectLayoutsChangeNoBit(values, want, [&](ConstView x, MutableView y) {
      return norm.apply(x, weight2, bias2, 1e-5, y);
    });
  });
}

TEST(LayerNorm, ConstantRowsGiveTheBias) {
  const std::vector<float> bias = RandomFloats(777, 1);
  ForEachTarget([&](const std::string&) {
    for (const float value : {4.0f, 0.3f, -1e6f / 3, 1e-30f, 3e38f}) {
      for (const size_t cols : {1, 16, 33, 777}) {
        for (const double epsilon : {1e-5, 1e-12, 0.0}) {
          const Shape shape{3, cols};
          const std::vector<float> x(3 * cols, value);
          std::vector<float> y(3 * cols);
          ASSERT_TRUE(LayerNorm(ConstView(x.data(), shape), {}, ConstView(bias.data(), Shape{cols}),
                                epsilon, {y.data(), shape})
                          .ok());
          for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], bias[i % cols]) << value;
        }
      }
    }
  });
}

// A power of two that is added to all elements without rounding changes little, however large it is
// beside them: at most an ulp or two.
TEST(LayerNorm, ALargeMeanCostsNoAccuracy) {
  std::vector<float> x = RandomFloats(5 * 300, 5);
  for (float& v : x) v = std::round(v * 64) / 64;
  std::vector<float> shifted = x;
  for (float& v : shifted) v += 131072;
  const Shape shape{5, 300};
  ForEachTarget([&](const std::string& target) {
    std::vector<float> want(x.size()), got(x.size());
    ASSERT_TRUE(LayerNorm({x.data(), shape}, {}, {}, 1e-5, {want.data(), shape}).ok());
    ASSERT_TRUE(LayerNorm({shifted.data(), shape}, {}, {}, 1e-5, {got.data(), shape}).ok());
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, static_cast<double>(std::fabs(got[i] - want[i])));
    }
    std::printf("%-9s largest difference: %.2e\n", target.c_str(), worst);
    EXPECT_LE(worst, 1e-6);
  });
}

TEST(Norm, RoundingModeOfTheCallerChangesNoBit) {
  const std::vector<float> x = RandomFloats(37, 3, 1e-4f);  // a variance far below epsilon
  const Shape shape{1, 37};
  ForEachNorm([&](const Norm& norm, const std::string&) {
    for (int i = 1; i < 200; ++i) {  // most of them are no f32
      const double epsilon = 1e-5 * i;
      std::vector<float> want(37), got(37);
      ASSERT_TRUE(norm.apply({x.data(), shape}, {}, {}, epsilon, {want.data(), shape}).ok());
      ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
      const Status status = norm.apply({x.data(), shape}, {}, {}, epsilon, {got.data(), shape});
      std::fesetround(FE_TONEAREST);
      ASSERT_TRUE(status.ok());
      EXPECT_TRUE(SameBits(got, want)) << epsilon;
    }
  });
}

TEST(Norm, NanReachesItsRowAlone) {
  ForEachNorm([](const Norm& norm, const std::string&) {
    std::vector<float> x = RandomFloats(6 * 33, 9);
    x[2 * 33 + 32] = std::nanf("");
    x[4 * 33] = std::numeric_limits<float>::infinity();
    std::vector<float> y(6 * 33);
    const Shape shape{6, 33};
    ASSERT_TRUE(norm.apply(ConstView(x.data(), shape), {}, {}, 1e-5, {y.data(), shape}).ok());
    // An infinity makes its row's deviation infinite; what is finite in it has no mean in
    // LayerNorm.
    const bool has_mean = norm.kernel == &internal::NormKernels::layer_norm;
    for (size_t i = 0; i < y.size(); ++i) {
      const bool of_infinity = has_mean ? i / 33 == 4 : i == 4 * 33;
      ASSERT_EQ(std::isnan(y[i]), i / 33 == 2 || of_infinity) << i;
    }
  });
}

TEST(Norm, RefusesBadArguments) {
  std::vector<float> memory(64, 1.0f);
  Guarded y(Shape{2, 4});
  const ConstView x(memory.data(), Shape{2, 4});
  const ConstView good(memory.data(), Shape{4});
  const auto refused = [](const Status& status, const char* word) {
    EXPECT_TRUE(FailsWith(status, {word}));
  };
  refused(LayerNorm(x, ConstView(memory.data(), Shape{5}), good, 1e-5, y.view()), "weight");
  refused(LayerNorm(x, good, ConstView(memory.data(), Shape{1, 4}), 1e-5, y.view()), "bias");
  refused(LayerNorm(x, good, good, -1e-5, y.view()), "epsilon");
  refused(LayerNorm(x, good, good, std::nan(""), y.view()), "epsilon");
  refused(LayerNorm(x, good, good, std::numeric_limits<double>::infinity(), y.view()), "epsilon");
  refused(LayerNorm(ConstView(memory.data(), Shape()), {}, {}, 1e-5, y.view()), "rank");
  refused(LayerNorm(ConstView(memory.data(), Shape{4, 2}), {}, {}, 1e-5, y.view()), "[2, 4]");
  refused(RmsNorm(x, ConstView(memory.data(), Shape{5}), 1e-5, y.view()), "weight");
  refused(RmsNorm(x, good, -1e-5, y.view()), "epsilon");
  EXPECT_TRUE(y.Untouched());
  refused(LayerNorm(x, {}, ConstView(memory.data() + 20, Shape{4}), 1e-5,
                    MutableView(memory.data() + 17, Shape{2, 4})),
          "bias");
}

}  // namespace
}  // namespace encore
