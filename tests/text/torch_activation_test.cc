// SPDX-License-Identifier: Apache-2.0
//
// torch's activations against their formulas in double precision, what they are at the edges, and
// behind a folder's dense layers and heads.

#include "engine/base/activations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

using internal::ActivationRow;
using internal::FindTorchActivation;

double Shrunk(double x, double by) { return x > 0.5 ? x - by : x < -0.5 ? x + by : 0; }

// As torch's documentation has them, with the arguments' defaults.
const std::map<std::string, std::function<double(double)>>& Formulas() {
  static const auto* formulas = new std::map<std::string, std::function<double(double)>>{
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"CELU", [](double x) { return std::max(0.0, x) + std::min(0.0, std::expm1(x)); }},
      {"ELU", [](double x) { return x > 0 ? x : std::expm1(x); }},
      {"GELU", [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
      {"Hardshrink", [](double x) { return Shrunk(x, 0); }},
      {"Hardsigmoid", [](double x) { return std::min(std::max(x / 6 + 0.5, 0.0), 1.0); }},
      {"Hardswish", [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }},
      {"Hardtanh", [](double x) { return std::min(std::max(x, -1.0), 1.0); }},
      {"LeakyReLU", [](double x) { return std::max(0.0, x) + 0.01 * std::min(0.0, x); }},
      {"LogSigmoid",
       [](double x) { return x > 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x)); }},
      {"Mish", [](double x) { return x * std::tanh(x > 30 ? x : std::log1p(std::exp(x))); }},
      {"RReLU", [](double x) { return x > 0 ? x : (1.0 / 8 + 1.0 / 3) / 2 * x; }},
      {"ReLU", [](double x) { return std::max(0.0, x); }},
      {"ReLU6", [](double x) { return std::min(std::max(0.0, x), 6.0); }},
      {"SELU",
       [](double x) {
         return 1.0507009873554804934193349852946 *
                (x > 0 ? x : 1.6732632423543772848170429916717 * std::expm1(x));
       }},
      {"SiLU", [](double x) { return x / (1 + std::exp(-x)); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Softplus", [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }},
      {"Softshrink", [](double x) { return Shrunk(x, 0.5); }},
      {"Softsign", [](double x) { return x / (1 + std::abs(x)); }},
      {"Tanhshrink",
       [](double x) {
         return std::abs(x) < 0.02 ? x * x * x * (1.0 / 3 - x * x * (2.0 / 15 - x * x * 17 / 315))
                                   : x - std::tanh(x);
       }},
  };
  return *formulas;
}

float Apply(const ActivationRow& activation, float x) {
  activation.apply(&x, 1);
  return x;
}

std::vector<float> ActivationValues() {
  std::vector<float> values = {0, 1e-30F, -1e-30F, 0.5F, -0.5F, 3, -3, 6, -6, 20, -20, 87, -87};
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float scale : {1e-4F, 0.01F, 0.3F, 1.0F, 3.0F, 20.0F}) {
    for (int i = 0; i < 20000; ++i) values.push_back(scale * normal(random));
  }
  return values;
}

TEST(TorchActivation, FollowTheirFormulas) {
  const std::vector<float> values = ActivationValues();
  for (const auto& [name, formula] : Formulas()) {
    SCOPED_TRACE(name);
    const ActivationRow* activation = FindTorchActivation("torch.nn.modules.activation." + name);
    ASSERT_NE(activation, nullptr);
    double worst = 0;
    for (const float x : values) {
      const double wanted = formula(static_cast<double>(x));
      const double found = static_cast<double>(Apply(*activation, x));
      // 4 units in the last place of the result, or the least normal f32.
      const double bound = 2.4e-7 * std::abs(wanted) + 1.2e-38;
      worst = std::max(worst, std::abs(found - wanted) / bound);
      ASSERT_TRUE(std::abs(found - wanted) <= bound) << x << ": " << found << ", not " << wanted;
    }
    RecordProperty("worst share of the bound", std::to_string(worst));
  }
}

TEST(TorchActivation, AreDefinedAtTheEdges) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [name, formula] : Formulas()) {
    SCOPED_TRACE(name);
    const ActivationRow* activation = FindTorchActivation("torch.nn." + name);
    ASSERT_NE(activation, nullptr);
    EXPECT_TRUE(std::isnan(Apply(*activation, std::numeric_limits<float>::quiet_NaN())));
    for (const float large : {1e4F, 3e38F}) {
      EXPECT_FLOAT_EQ(Apply(*activation, large), static_cast<float>(formula(double{large})));
      if (name == "SiLU" || name == "GELU" || name == "Mish") continue;  // 0 as well as -0
      EXPECT_FLOAT_EQ(Apply(*activation, -large), static_cast<float>(formula(double{-large})));
    }
    if (name != "Softsign") {
      EXPECT_FALSE(std::isnan(Apply(*activation, infinity)));
    }
  }
}

TEST(TorchActivation, SoftmaxIsOfTheRow) {
  const ActivationRow* softmax = FindTorchActivation("torch.nn.Softmax");
  ASSERT_NE(softmax, nullptr);
  float row[] = {1, -2, 0.5F};
  softmax->apply(row, 3);
  const double sum = std::exp(1) + std::exp(-2) + std::exp(0.5);
  EXPECT_NEAR(static_cast<double>(row[0]), std::exp(1) / sum, 1e-7);
  EXPECT_NEAR(static_cast<double>(row[1]), std::exp(-2) / sum, 1e-7);
  EXPECT_NEAR(static_cast<double>(row[2]), std::exp(0.5) / sum, 1e-7);
}

TEST(TorchActivation, AreFoundByTheirFullNamesOnly) {
  const ActivationRow* identity = FindTorchActivation("torch.nn.modules.linear.Identity");
  ASSERT_NE(identity, nullptr);
  EXPECT_EQ(FindTorchActivation("torch.nn.Identity"), identity);
  EXPECT_EQ(Apply(*identity, -0.25F), -0.25F);
  for (const char* name :
       {"", "Tanh", "torch.Tanh", "torch.nn.modules.linear.Tanh", "torch.nn.functional.gelu",
        "torch.nn.modules.activation.Identity", "torch.nn.modules.activation.PReLU",
        "torch.nn.modules.activation.tanh", "torch.nn.modules.activation.GELUTanh"}) {
    EXPECT_EQ(FindTorchActivation(name), nullptr) << name;
  }
  EXPECT_NE(internal::TorchActivationNames().find("torch.nn.modules.activation.GELU"),
            std::string::npos);
}

std::vector<float> Flat(const Tensor& tensor) {
  const auto* values = static_cast<const float*>(tensor.data());
  return {values, values + tensor.size_bytes() / sizeof(float)};
}

void ExpectApplied(const std::function<double(double)>& formula, const std::vector<float>& plain,
                   const std::vector<float>& found) {
  ASSERT_EQ(found.size(), plain.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double wanted = formula(static_cast<double>(plain[i]));
    EXPECT_NEAR(static_cast<double>(found[i]), wanted, 2.4e-7 * std::abs(wanted) + 1e-38);
  }
}

const std::vector<std::string> kTexts = {"tea", "The harbour lies between two hills.", ""};

TEST(TorchActivation, FollowDenseLayers) {
  const TextFolder folder;
  folder.WriteModules({"Dense"});
  folder.AddDense("2_Dense", "2_Dense");
  const auto vectors = [&](const std::string& activation) {
    folder.WriteJson("2_Dense/config.json", {{"in_features", 32},
                                             {"out_features", 20},
                                             {"activation_function", "torch.nn." + activation}});
    const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
    const Result<Embeddings> embeddings = model.Encode(kTexts);
    EXPECT_TRUE(embeddings.ok()) << embeddings.status().message();
    return embeddings.ok() ? Flat(embeddings->vectors) : std::vector<float>();
  };
  const std::vector<float> plain = vectors("Identity");
  ASSERT_EQ(plain.size(), 60u);
  for (const auto& [name, formula] : Formulas()) {
    SCOPED_TRACE(name);
    ExpectApplied(formula, plain, vectors(name));
  }
}

TEST(TorchActivation, FollowHeads) {
  const auto scores = [](const std::string& activation) {
    const TextFolder folder("classifier");
    folder.PatchJson("config.json",
                     {{"sentence_transformers", {{"activation_fn", "torch.nn." + activation}}}});
    const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
    const Result<Predictions> predictions =
        model.Classify(kTexts, ScoreOptions{.activation = ScoreActivation::kAsCrossEncoder});
    EXPECT_TRUE(predictions.ok()) << predictions.status().message();
    return predictions.ok() ? Flat(predictions->values) : std::vector<float>();
  };
  const std::vector<float> plain = scores("Identity");
  ASSERT_EQ(plain.size(), 9u);
  for (const auto& [name, formula] : Formulas()) {
    SCOPED_TRACE(name);
    ExpectApplied(formula, plain, scores(name));
  }
  const std::vector<float> shares = scores("Softmax");
  for (size_t i = 0; i < 9; i += 3) EXPECT_NEAR(shares[i] + shares[i + 1] + shares[i + 2], 1, 1e-6);
}

}  // namespace
}  // namespace encore
