// SPDX-License-Identifier: Apache-2.0
//
// The worked examples of tests/data/worked_examples.json through the public operations, on every
// SIMD target: every printed digit, shapes included. `encore attend` is held to them in
// cli_attend_test.cc.

#include <cmath>
#include <cstddef>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/ops.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "reference/encoder.h"
#include "reference/encoder_model.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

using Json = nlohmann::json;

constexpr double kTolerance = 2e-6;

// A matrix of f32, made of the file's doubles.
struct Numbers {
  explicit Numbers(const Shape& s) : shape(s), values(*s.NumElements()) {}
  explicit Numbers(const Json& rows) : shape(rows.size(), rows[0].size()) {
    for (const Json& row : rows) {
      EXPECT_EQ(row.size(), shape[1]);
      for (const Json& v : row) values.push_back(static_cast<float>(v.get<double>()));
    }
  }
  ConstView in() const { return {values.data(), shape}; }
  MutableView out() { return {values.data(), shape}; }
  Shape shape;
  std::vector<float> values;
};

Numbers Product(const Numbers& a, const Numbers& b, Transpose transpose = Transpose::kNo) {
  Numbers c(Shape(a.shape[0], b.shape[transpose == Transpose::kYes ? 0 : 1]));
  const Status status = MatMul(a.in(), b.in(), c.out(), {.transpose_b = transpose});
  EXPECT_TRUE(status.ok()) << status.message();
  return c;
}

testing::AssertionResult Agrees(const Numbers& got, const Json& want) {
  if (want.size() != got.shape[0] || want[0].size() != got.shape[1]) {
    return testing::AssertionFailure() << "the shape is " << got.shape.ToString() << "; wanted ["
                                       << want.size() << ", " << want[0].size() << "]";
  }
  std::vector<double> flat;
  for (const Json& row : want) flat.insert(flat.end(), row.begin(), row.end());
  return Near(got.values, flat, kTolerance);
}

Json Cases() {
  std::ifstream file(std::string(ENCORE_TEST_DATA_DIR) + "/worked_examples.json");
  return Json::parse(file)["cases"];
}

Json CaseNamed(const std::string& name) {
  for (const Json& c : Cases()) {
    if (c["name"] == name) return c;
  }
  ADD_FAILURE() << "there is no case " << name;
  return {};
}

// Everything that a case prints, from what it is given: X and the projections, or Q, K and V.
void CheckAttentionCase(const Json& c) {
  SCOPED_TRACE(c["name"].get<std::string>());
  const auto matrix = [&](const char* projected, const char* weight) {
    return c.contains("X") ? Product(Numbers(c["X"]), Numbers(c[weight])) : Numbers(c[projected]);
  };
  const Numbers q = matrix("Q", "W_q");
  const Numbers k = matrix("K", "W_k");
  const Numbers v = matrix("V", "W_v");
  EXPECT_TRUE(!c.contains("Q") || Agrees(q, c["Q"]));
  EXPECT_TRUE(!c.contains("K") || Agrees(k, c["K"]));
  EXPECT_TRUE(!c.contains("V") || Agrees(v, c["V"]));

  // By steps.
  Numbers scores = Product(q, k, Transpose::kYes);
  for (float& s : scores.values) s /= std::sqrt(static_cast<float>(q.shape[1]));
  EXPECT_TRUE(Agrees(scores, c["scores"]));
  Numbers weights(scores.shape);
  ASSERT_TRUE(Softmax(scores.in(), weights.out()).ok());
  EXPECT_TRUE(Agrees(weights, c["weights"]));
  EXPECT_TRUE(Agrees(Product(weights, v), c["output"]));

  // And in one call.
  Numbers output(Shape(q.shape[0], v.shape[1]));
  Numbers tapped(scores.shape);
  ASSERT_TRUE(Attention(q.in(), k.in(), v.in(), output.out(), {.weights = tapped.out()}).ok());
  EXPECT_TRUE(Agrees(tapped, c["weights"]));
  EXPECT_TRUE(Agrees(output, c["output"]));
}

TEST(WorkedExamples, EveryPrintedDigit) {
  const Json cases = Cases();
  ForEachTarget([&](const std::string&) {
    size_t checked = 0;
    for (const Json& c : cases) {
      if (!c.contains("output")) continue;
      CheckAttentionCase(c);
      ++checked;
    }
    EXPECT_EQ(checked, 3u);
  });
}

// A sentence as a batch of one: weights are [1, 6, 6], one row a token, and each sums to 1.
TEST(WorkedExamples, ShapesOfTheSentence) {
  const Json c = CaseNamed("sentence_on_the_mat");
  const size_t tokens = c["tokens"].size();
  const size_t d = c["embedding_dim"];
  const auto shape = [&](const char* name) {
    const std::vector<size_t> extents = c["shapes"][name];
    return *Shape::Create(extents.data(), extents.size());
  };
  ASSERT_EQ(shape("X"), Shape(1, tokens, d));
  const std::vector<float> x = RandomFloats(tokens * d, 42);
  ForEachTarget([&](const std::string&) {
    std::vector<std::vector<float>> qkv;
    for (uint32_t i = 0; i < 3; ++i) {
      const std::vector<float> w = RandomFloats(d * d, i);
      qkv.emplace_back(tokens * d);
      ASSERT_TRUE(MatMul(ConstView(x.data(), shape("X"))[0], {w.data(), {d, d}},
                         MutableView(qkv.back().data(), shape("Q"))[0])
                      .ok());
    }
    Guarded output(shape("output"));
    Guarded weights(shape("weights"));
    const ConstView q(qkv[0].data(), shape("Q")), k(qkv[1].data(), shape("Q")),
        v(qkv[2].data(), shape("Q"));
    const Status status = Attention(q, k, v, output.view(), {.weights = weights.view()});
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < tokens; ++i) {
      float sum = 0;
      for (size_t j = 0; j < tokens; ++j) sum += weights.view()(0, i, j);
      EXPECT_NEAR(sum, 1, kTolerance);
    }
    // The document's own product of a batch gave [1, 6, 1, 6]; that is refused.
    std::vector<float> wrong(tokens * tokens);
    EXPECT_TRUE(FailsWith(
        Attention(q, k, v, output.view(), {.weights = {wrong.data(), {1, tokens, 1, tokens}}}),
        {"weights has shape [1, 6, 1, 6]", "wanted [1, 6, 6]"}));
  });
}

TEST(WorkedExamples, RandomMatricesOfFourByEight) {
  ASSERT_TRUE(CaseNamed("attention_4x8").contains("what"));
  ForEachTarget([&](const std::string&) {
    const std::vector<float> drawn = RandomFloats(3 * 32, 1);
    std::vector<float> uniform;
    for (const float v : drawn) uniform.push_back(v - std::floor(v));  // in [0, 1)
    const ConstView q(uniform.data(), {4, 8}), k(uniform.data() + 32, {4, 8}),
        v(uniform.data() + 64, {4, 8});
    Guarded context({4, 8});
    Guarded weights({4, 4});
    ASSERT_TRUE(Attention(q, k, v, context.view(), {.weights = weights.view()}).ok());
    for (size_t i = 0; i < 4; ++i) {
      float sum = 0;
      for (size_t j = 0; j < 4; ++j) sum += weights.view()(i, j);
      EXPECT_NEAR(sum, 1, kTolerance);
    }
    EXPECT_TRUE(context.Intact());
    EXPECT_TRUE(weights.Intact());
  });
}

TEST(WorkedExamples, TheBlock) {
  const Json c = CaseNamed("encoder_block");
  ASSERT_EQ(c["input_shape"], c["output_shape"]);
  const size_t batch = c["input_shape"][0];
  const size_t seq = c["input_shape"][1];
  const EncoderConfig config =
      TorchStack{.d_model = c["d_model"],
                 .num_heads = c["nhead"],
                 .d_ff = c["dim_feedforward"],
                 .activation = *ActivationFromName(c["activation"].get<std::string>())};
  ASSERT_EQ(c["input_shape"][2], config.d_model);
  const EncoderModel model(config);
  const Shape shape(batch, seq, config.d_model);
  const std::vector<float> x = RandomFloats(*shape.NumElements(), 7);
  const PaddedBatch padded = Taken(PaddedBatch::Create(batch, seq));
  std::vector<reference::EncoderResult<double>> want;
  for (size_t b = 0; b < batch; ++b) {
    want.push_back(
        reference::Encode<double>(config, model.weights(), ConstView(x.data(), shape)[b]));
  }
  ForEachTarget([&](const std::string&) {
    const std::vector<float> y = Forward(model.Make(), padded.batch(), x, Executor::OpenMP());
    for (size_t b = 0; b < batch; ++b) {
      EXPECT_TRUE(Near(std::span(y).subspan(b * seq * config.d_model, seq * config.d_model),
                       want[b].y.data, kTolerance));
    }
  });
}

}  // namespace
}  // namespace encore
