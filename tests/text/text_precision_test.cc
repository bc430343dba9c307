// SPDX-License-Identifier: Apache-2.0
//
// TextEncoder in bf16, int8 and int4: what OpenOptions ask for is what is computed and told, heads
// and pooling stay f32, and the same bits whatever the batch.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "tests/support/compare.h"
#include "tests/support/precisions.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

constexpr size_t kWidth = 32;
const std::vector<std::string> kPrecisionTexts = {
    "the bread", "", "these letters and the harbour lie between two hills",
    "water boils on high mountains and tea tastes different there", "tea"};

std::vector<float> TensorValues(const Tensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data());
  return {data, data + tensor.size_bytes() / sizeof(float)};
}

std::string Told(const TextEncoder& model, const std::string& what) {
  for (const Decision& d : model.Describe()) {
    if (d.what == what) return d.value + " | " + d.source;
  }
  return "";
}

// The root of the mean square of a - b, over that of b.
double RelativeError(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    error += std::pow(double{a[i]} - double{b[i]}, 2);
    size += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(error / size);
}

TEST(TextPrecisionTest, IsComputedAndTold) {
  const TextFolder folder;
  const TextEncoder f32 = Taken(TextEncoder::Open(folder.path()));
  EXPECT_EQ(Told(f32, "precision"), "f32 | default");
  const std::vector<float> wanted = TensorValues((*f32.Encode(kPrecisionTexts)).vectors);

  struct Case {
    Precision precision;
    std::vector<MatrixOfLayer> keep;
    std::string told;
    double most_error;  // of the type's rounding, over two layers
  };
  const std::vector<MatrixOfLayer> all = {{0, LayerMatrix::kQkv},     {0, LayerMatrix::kOutProj},
                                          {0, LayerMatrix::kLinear1}, {0, LayerMatrix::kLinear2},
                                          {1, LayerMatrix::kQkv},     {1, LayerMatrix::kOutProj},
                                          {1, LayerMatrix::kLinear1}, {1, LayerMatrix::kLinear2}};
  std::vector<double> errors;
  std::vector<std::vector<float>> found;
  for (const Case& c :
       {Case{Precision::kBF16, {}, "bf16 in the layers, f32 in all else", 0x1p-7},
        Case{Precision::kInt8, {}, "int8 in the layers, f32 in all else", 0x1p-4},
        Case{Precision::kInt8, all, "int8 in the layers (8 kept in bf16), f32 in all else", 0x1p-7},
        Case{Precision::kInt4, {}, "int4 in the layers, f32 in all else", 0x1p-1},
        Case{Precision::kInt4, all, "int4 in the layers (8 kept in bf16), f32 in all else",
             0x1p-7}}) {
    const TextEncoder model =
        Taken(TextEncoder::Open(folder.path(), {.precision = c.precision, .keep = c.keep}));
    EXPECT_EQ(Told(model, "precision"), c.told + " | option precision");
    EXPECT_EQ(model.encoder().precision(), c.precision);
    found.push_back(TensorValues((*model.Encode(kPrecisionTexts)).vectors));
    const double error = RelativeError(found.back(), wanted);
    EXPECT_GT(error, 0x1p-14) << c.told;
    EXPECT_LT(error, c.most_error) << c.told;
  }
  // All matrices kept are bf16, to the bit.
  EXPECT_TRUE(SameBits(found[2], found[0]));
  EXPECT_TRUE(SameBits(found[4], found[0]));
  EXPECT_GT(RelativeError(found[1], wanted), 2 * RelativeError(found[0], wanted));
  EXPECT_GT(RelativeError(found[3], wanted), 2 * RelativeError(found[1], wanted));
}

TEST(TextPrecisionTest, WhatBecameOfAmxIsTold) {
  const TextFolder folder;
  const auto told = [&](Precision precision) {
    const TextEncoder model =
        Taken(TextEncoder::Open(folder.path(), {.precision = precision, .amx_bf16 = true}));
    // Some machines have it.
    EXPECT_EQ(Told(model, "AMX for bf16").starts_with("used | "), model.encoder().amx_bf16());
    return model.encoder().amx_bf16() ? "used" : Told(model, "AMX for bf16");
  };
  EXPECT_EQ(told(Precision::kF32), "not used, as all is f32 | option amx_bf16");
  const std::string of_bf16 = told(Precision::kBF16);
  EXPECT_TRUE(of_bf16 == "used" || of_bf16 == "not to be had here | option amx_bf16") << of_bf16;
}

TEST(TextPrecisionTest, BitsDoNotDependOnOtherTextsOrThreads) {
  const TextFolder folder;
  const ThreadPool pool = *ThreadPool::Create({.threads = 3});
  for (const Precision precision : {Precision::kBF16, Precision::kInt8, Precision::kInt4}) {
    const TextEncoder model = Taken(
        TextEncoder::Open(folder.path(), {.executor = pool.executor(), .precision = precision}));
    std::vector<std::string> many;
    for (size_t i = 0; i < 40; ++i) many.push_back(kPrecisionTexts[i * i % kPrecisionTexts.size()]);
    const std::vector<float> together =
        TensorValues((*model.Encode(many, {.executor = pool.executor()})).vectors);
    for (size_t i = 0; i < many.size(); ++i) {
      const std::vector<float> alone = TensorValues((*model.Encode({many[i]})).vectors);
      EXPECT_TRUE(SameBits({together.data() + i * kWidth, kWidth}, alone)) << i;
    }
  }
}

// The head reads hidden states of the layers' precision and is f32 itself: from the same hidden
// states the same scores.
TEST(TextPrecisionTest, HeadsAreF32) {
  const TextFolder folder("reranker");
  std::vector<std::vector<float>> scores;
  for (const Precision precision : kPrecisions) {
    const TextEncoder model = Taken(TextEncoder::Open(folder.path(), {.precision = precision}));
    scores.push_back((*model.Score("the tea", kPrecisionTexts)).values);
    if (precision == Precision::kF32) continue;
    EXPECT_NE(scores.back(), scores[0]);
    constexpr double kMost[] = {0, 0.01, 0.1, 0.5};
    EXPECT_LT(RelativeError(scores.back(), scores[0]), kMost[static_cast<size_t>(precision)]);
  }
}

TEST(TextPrecisionTest, KeepIsChecked) {
  const TextFolder folder;
  const auto refused = [&](const OpenOptions& options, const std::vector<std::string>& words) {
    EXPECT_TRUE(FailsWith(TextEncoder::Open(folder.path(), options), words));
  };
  refused({.keep = {{0, LayerMatrix::kQkv}}}, {"keep", "f32", "int8"});
  refused({.precision = Precision::kBF16, .keep = {{0, LayerMatrix::kQkv}}}, {"keep", "bf16"});
  refused({.precision = Precision::kInt8, .keep = {{0, LayerMatrix::kQkv}, {2, LayerMatrix::kQkv}}},
          {"keep[1]", "layer 2", "2 layers"});
}

}  // namespace
}  // namespace encore
