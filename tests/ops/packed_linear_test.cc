// SPDX-License-Identifier: Apache-2.0
//
// PackedLinear: the same bits as MatMul with the same matrices (which matmul_test.cc holds against
// the reference), whatever the batch, the executor and the target that is active when it is
// applied.

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "encore/ops.h"
#include "gtest/gtest.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

struct Layer {
  Layer(size_t outputs, size_t inputs)
      : out(outputs), in(inputs), w(RandomFloats(out * in, 1)), b(RandomFloats(out, 2)) {}
  ConstView weight() const { return {w.data(), {out, in}}; }
  ConstView bias() const { return {b.data(), Shape(out)}; }
  // x weight^T + bias by MatMul.
  std::vector<float> ByMatMul(const std::vector<float>& x, bool with_bias) const {
    const size_t m = x.size() / in;
    std::vector<float> y(m * out);
    MatMulOptions options;
    options.transpose_b = Transpose::kYes;
    if (with_bias) options.bias = bias();
    EXPECT_TRUE(MatMul({x.data(), {m, in}}, weight(), {y.data(), {m, out}}, options).ok());
    return y;
  }
  size_t out, in;
  std::vector<float> w, b;
};

TEST(PackedLinear, TheSameBitsAsMatMul) {
  const Executors executors;
  ForEachTarget([&](const std::string&) {
    for (const Layer& layer : {Layer(1, 1), Layer(100, 60), Layer(49, 1100)}) {
      for (const bool with_bias : {false, true}) {
        const PackedLinear linear =
            Taken(PackedLinear::Create(layer.weight(), with_bias ? layer.bias() : ConstView()));
        EXPECT_EQ(linear.in_features(), layer.in);
        EXPECT_EQ(linear.out_features(), layer.out);
        for (const size_t m : {1, 5, 33, 130}) {
          const std::vector<float> x = RandomFloats(m * layer.in, 3);
          const std::vector<float> want = layer.ByMatMul(x, with_bias);
          for (const auto& [name, executor] : executors) {
            Guarded y({m, layer.out});
            const Status status = linear.Apply({x.data(), {m, layer.in}}, y.view(), executor);
            ASSERT_TRUE(status.ok()) << status.message();
            ASSERT_TRUE(SameBits(Elements(y.view()), want)) << name;
            ASSERT_TRUE(y.Intact());
          }
        }
      }
    }
  });
}

TEST(PackedLinear, ViewsWithStrides) {
  ForEachTarget([](const std::string&) {
    const Layer layer(21, 13);
    const PackedLinear linear = Taken(PackedLinear::Create(layer.weight(), layer.bias()));
    const size_t m = 10;
    const std::vector<float> x = RandomFloats(m * 13, 3);
    const std::vector<float> want = layer.ByMatMul(x, true);
    std::vector<float> columns(m * 13);
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = 0; j < 13; ++j) columns[j * m + i] = x[i * 13 + j];
    }
    for (const TensorView<float>::Strides& strides :
         {TensorView<float>::Strides{30, 1}, {1, 17}, {-30, 1}, {60, 2}}) {
      Guarded y({m, 21}, strides);
      ASSERT_TRUE(
          linear.Apply({columns.data(), {m, 13}, {1, static_cast<ptrdiff_t>(m)}}, y.view()).ok());
      ASSERT_TRUE(SameBits(Elements(y.view()), want));
      ASSERT_TRUE(y.Intact());
    }
    // Weights of other strides are the same weights.
    std::vector<float> turned(21 * 13);
    for (size_t i = 0; i < 21; ++i) {
      for (size_t j = 0; j < 13; ++j) turned[j * 21 + i] = layer.w[i * 13 + j];
    }
    const Result<PackedLinear> other =
        PackedLinear::Create({turned.data(), {21, 13}, {1, 21}}, layer.bias());
    Guarded y({m, 21});
    ASSERT_TRUE(other->Apply({x.data(), {m, 13}}, y.view()).ok());
    ASSERT_TRUE(SameBits(Elements(y.view()), want));
  });
}

TEST(PackedLinear, KeepsTheTargetItWasPackedFor) {
  const Layer layer(70, 90);
  const std::vector<float> x = RandomFloats(20 * 90, 3);
  for (const std::string& packed_for : SupportedTargets()) {
    ASSERT_TRUE(SetTarget(packed_for).ok());
    const Result<PackedLinear> linear = PackedLinear::Create(layer.weight(), layer.bias());
    const std::vector<float> want = layer.ByMatMul(x, true);
    const PackedLinear copy = *linear;
    ForEachTarget([&](const std::string&) {
      std::vector<float> y(20 * 70);
      ASSERT_TRUE(copy.Apply({x.data(), {20, 90}}, {y.data(), {20, 70}}).ok());
      EXPECT_TRUE(SameBits(y, want)) << "packed for " << packed_for;
    });
  }
  ASSERT_TRUE(SetTarget("").ok());
}

TEST(PackedLinear, SharedByThreads) {
  const Layer layer(70, 90);
  const std::vector<float> x = RandomFloats(20 * 90, 3);
  const std::vector<float> want = layer.ByMatMul(x, true);
  const Result<PackedLinear> linear = PackedLinear::Create(layer.weight(), layer.bias());
  std::vector<std::vector<float>> y(8, std::vector<float>(20 * 70));
  std::vector<std::thread> threads;
  for (std::vector<float>& mine : y) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        (void)linear->Apply({x.data(), {20, 90}}, {mine.data(), {20, 70}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& mine : y) EXPECT_TRUE(SameBits(mine, want));
}

TEST(PackedLinear, ErrorsNameTheView) {
  const Layer layer(6, 5);
  EXPECT_TRUE(FailsWith(PackedLinear::Create(layer.bias()), {"weight has shape [6]", "rank 2"}));
  EXPECT_TRUE(FailsWith(PackedLinear::Create({nullptr, {6, 5}}), {"weight", "no data"}));
  EXPECT_TRUE(FailsWith(PackedLinear::Create(layer.weight(), {layer.b.data(), Shape(5)}),
                        {"bias has shape [5]", "wanted [6]"}));
  const size_t huge = size_t{1} << 45;
  EXPECT_TRUE(FailsWith(PackedLinear::Create({layer.w.data(), {huge, 1}, {0, 0}}), {"memory"},
                        ErrorCode::kOutOfMemory));

  // No elements, however many rows: nothing to do.
  EXPECT_TRUE(PackedLinear::Create({nullptr, {size_t{1} << 60, 0}}).ok());

  const PackedLinear linear = Taken(PackedLinear::Create(layer.weight()));
  std::vector<float> x(100);
  Guarded y({4, 6});
  EXPECT_TRUE(FailsWith(linear.Apply({x.data(), {4, 6}}, y.view()),
                        {"x has shape [4, 6]", "wanted [4, 5]"}));
  EXPECT_TRUE(
      FailsWith(linear.Apply({x.data(), Shape(5)}, y.view()), {"x has shape [5]", "rank 2"}));
  EXPECT_TRUE(FailsWith(linear.Apply({x.data(), {3, 5}}, y.view()),
                        {"y has shape [4, 6]", "wanted [3, 6]"}));
  EXPECT_TRUE(
      FailsWith(linear.Apply({x.data(), {4, 5}}, {x.data(), {4, 6}, {0, 1}}), {"y is an output"}));
  EXPECT_TRUE(FailsWith(linear.Apply({x.data() + 3, {4, 5}}, {x.data(), {4, 6}}),
                        {"y of shape [4, 6]", "shares memory with x"}));
  EXPECT_TRUE(y.Untouched());

  const PackedLinear none;
  EXPECT_EQ(none.in_features(), 0u);
  EXPECT_EQ(none.out_features(), 0u);
  EXPECT_TRUE(FailsWith(none.Apply({x.data(), {4, 5}}, y.view()), {"PackedLinear", "Create"}));
}

}  // namespace
}  // namespace encore
