// SPDX-License-Identifier: Apache-2.0
//
// What bf16, int8 and int4 lose: on the real all-MiniLM-L6-v2, where it is there, and on a layer
// with outlier channels, where smoothing and `keep` must mend what plain int8 loses.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "nlohmann/json.hpp"
#include "reference/drawn.h"
#include "reference/sequences.h"
#include "tests/support/results.h"
#include "tests/support/targets.h"
#include "tests/text/plain_int8.h"

namespace encore {
namespace {

double Cosine(const std::vector<double>& a, const std::vector<double>& b) {
  const double product = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  const double squares = std::inner_product(a.begin(), a.end(), a.begin(), 0.0) *
                         std::inner_product(b.begin(), b.end(), b.begin(), 0.0);
  return product / std::sqrt(squares);
}

// ---- The real model

std::string Folder() {
  const char* named = std::getenv("ENCORE_MINILM");
  if (named != nullptr && *named != '\0') return named;
  return ENCORE_SOURCE_DIR "/.deps/models/all-MiniLM-L6-v2";
}

// A quarter of the sentences.
std::vector<std::string> Sentences() {
  std::ifstream file(ENCORE_TEST_DATA_DIR "/text/sentences.jsonl");
  std::vector<std::string> sentences;
  std::string line;
  for (size_t i = 0; std::getline(file, line); ++i) {
    if (i % 4 == 0) sentences.push_back(nlohmann::json::parse(line).get<std::string>());
  }
  return sentences;
}

using DoubleVectors = std::vector<std::vector<double>>;

void Encode(Precision precision, const std::vector<std::string>& texts, DoubleVectors* vectors) {
  const ThreadPool pool = *ThreadPool::Create({.threads = 2});
  const TextEncoder model =
      Taken(TextEncoder::Open(Folder(), {.executor = pool.executor(), .precision = precision}));
  const Embeddings found = Taken(model.Encode(texts, {.executor = pool.executor()}));
  const ConstView rows = found.vectors.View<float>();
  vectors->clear();
  for (size_t i = 0; i < texts.size(); ++i) {
    vectors->emplace_back();
    for (size_t c = 0; c < rows.dim(1); ++c) vectors->back().push_back(double{rows(i, c)});
  }
}

// The place of each pair's cosine among those of all pairs.
std::vector<double> RanksOfPairs(const DoubleVectors& vectors) {
  std::vector<double> cosines;
  for (size_t i = 0; i < vectors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) cosines.push_back(Cosine(vectors[i], vectors[j]));
  }
  std::vector<size_t> order(cosines.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return cosines[a] < cosines[b]; });
  std::vector<double> ranks(order.size());
  // Around a mean of 0, so that the cosine of two of them is their correlation.
  const double middle = static_cast<double>(order.size() - 1) / 2;
  for (size_t i = 0; i < order.size(); ++i) ranks[order[i]] = static_cast<double>(i) - middle;
  return ranks;
}

TEST(PrecisionAccuracyTest, KeepsTheVectorsOfRealSentences) {
  if (!std::filesystem::exists(Folder())) {
    GTEST_SKIP() << "there is no " << Folder() << "; tools/fetch_model.sh fetches it";
  }
  const std::vector<std::string> sentences = Sentences();
  ASSERT_EQ(sentences.size(), 100u);
  DoubleVectors wanted;
  ASSERT_NO_FATAL_FAILURE(Encode(Precision::kF32, sentences, &wanted));
  const std::vector<double> wanted_ranks = RanksOfPairs(wanted);
  struct Target {
    Precision precision;
    double mean, worst, rank;
  };
  // As in tests/compare/check_precision.py.
  for (const Target& target : {Target{Precision::kBF16, 0.9999, 0.9999, 0.9999},
                               Target{Precision::kInt8, 0.9990, 0.997, 0.9985},
                               Target{Precision::kInt4, 0.975, 0.945, 0.96}}) {
    DoubleVectors found;
    ASSERT_NO_FATAL_FAILURE(Encode(target.precision, sentences, &found));
    double sum = 0;
    double worst = 1;
    for (size_t i = 0; i < sentences.size(); ++i) {
      const double cosine = Cosine(found[i], wanted[i]);
      sum += cosine;
      worst = std::min(worst, cosine);
    }
    const double mean = sum / static_cast<double>(sentences.size());
    const double rank = Cosine(RanksOfPairs(found), wanted_ranks);
    std::printf("%s: cosine %.6f on average, %.6f at worst, rank correlation %.6f\n",
                std::string(PrecisionName(target.precision)).c_str(), mean, worst, rank);
    EXPECT_GE(mean, target.mean);
    EXPECT_GE(worst, target.worst);
    EXPECT_GE(rank, target.rank);
    EXPECT_LT(mean, 1 - 1e-7) << "nothing was rounded";
  }
}

// ---- Outlier channels

constexpr size_t kD = 256;
constexpr size_t kHeads = 8;
constexpr size_t kInner = 1024;
constexpr size_t kLength = 16;
constexpr size_t kTokens = 4 * kLength;
constexpr size_t kOutliers[] = {7, 60, 123, 180, 201, 249};
constexpr float kFactor = 30;

bool IsOutlier(size_t channel) {
  return std::find(std::begin(kOutliers), std::end(kOutliers), channel) != std::end(kOutliers);
}

// The norms before both products of the second layer have six channels 30 times as large as the
// rest, and the matrices that read them columns as much smaller: every channel matters alike.
class Outliers {
 public:
  Outliers() {
    for (uint32_t layer = 0; layer < 2; ++layer) {
      PlainLayer& l = layers_[layer];
      const uint32_t seed = 100 * (layer + 1);
      l.qkv = {RandomFloats(3 * kD * kD, seed + 1, 0.06f), RandomFloats(3 * kD, seed + 2, 0.05f)};
      l.out = {RandomFloats(kD * kD, seed + 3, 0.05f), RandomFloats(kD, seed + 4, 0.05f)};
      l.linear1 = {RandomFloats(kInner * kD, seed + 5, 0.06f),
                   RandomFloats(kInner, seed + 6, 0.1f)};
      l.linear2 = {RandomFloats(kD * kInner, seed + 7, 0.04f), RandomFloats(kD, seed + 8, 0.05f)};
      l.norm1 = {RandomFloats(kD, seed + 9, 0.05f, 0.6f), RandomFloats(kD, seed + 10, 0.05f)};
      l.norm2 = {RandomFloats(kD, seed + 11, 0.05f, 0.6f), RandomFloats(kD, seed + 12, 0.05f)};
    }
    for (const size_t k : kOutliers) {
      layers_[0].norm2.weight[k] *= kFactor;
      layers_[1].norm1.weight[k] *= kFactor;
      for (size_t n = 0; n < 3 * kD; ++n) layers_[1].qkv.weight[n * kD + k] /= kFactor;
      for (size_t n = 0; n < kInner; ++n) layers_[1].linear1.weight[n * kD + k] /= kFactor;
    }
    x_ = RandomFloats(kTokens * kD, 99);
  }

  const PlainLayer& second() const { return layers_[1]; }

  // y; *middle, if given, becomes the output of the first layer.
  std::vector<float> Run(const EncoderOptions& options,
                         std::vector<float>* middle = nullptr) const {
    EncoderWeights weights;
    for (const PlainLayer& l : layers_) weights.layers.push_back(l.Views(kD, kInner));
    const EncoderConfig config = EncoderConfig::Uniform(
        kD, 2, {.num_heads = kHeads, .d_ff = kInner, .activation = Activation::kGelu});
    const Result<Encoder> encoder = Encoder::Create(config, weights, options);
    EXPECT_TRUE(encoder.ok()) << encoder.status().message();
    const std::vector<size_t> starts = Starts(std::vector<size_t>(kTokens / kLength, kLength));
    const Batch batch{.seq_starts = starts};
    std::vector<float> y(x_.size());
    std::vector<float> hidden(2 * x_.size());
    const Shape shape(kTokens, kD);
    const std::vector<MutableView> taps = {{hidden.data(), shape},
                                           {hidden.data() + x_.size(), shape}};
    const Status status = encoder->Forward(batch, ConstView(x_.data(), shape), {y.data(), shape},
                                           *encoder->MakeWorkspace(batch), {}, {.hidden = taps});
    EXPECT_TRUE(status.ok()) << status.message();
    if (middle != nullptr) {
      middle->assign(hidden.begin(), hidden.begin() + static_cast<ptrdiff_t>(x_.size()));
    }
    return y;
  }

 private:
  PlainLayer layers_[2];
  std::vector<float> x_;
};

// The least cosine of a token over its ordinary channels.
template <typename T>
double WorstCosine(const std::vector<T>& found, const std::vector<float>& wanted) {
  double worst = 1;
  for (size_t t = 0; t < kTokens; ++t) {
    std::vector<double> a;
    std::vector<double> b;
    for (size_t c = 0; c < kD; ++c) {
      if (IsOutlier(c)) continue;
      a.push_back(static_cast<double>(found[t * kD + c]));
      b.push_back(static_cast<double>(wanted[t * kD + c]));
    }
    const double cosine = Cosine(a, b);
    worst = cosine >= worst ? worst : cosine;  // NaN is the worst
  }
  return worst;
}

TEST(PrecisionAccuracyTest, SmoothingAndKeepMendOutlierChannels) {
  constexpr double kMended = 0.9998;
  const Outliers model;
  // The first layer stays in bf16: its own norms are ordinary, and the second's are what is tried.
  const std::vector<MatrixOfLayer> first = {{0, LayerMatrix::kQkv},
                                            {0, LayerMatrix::kOutProj},
                                            {0, LayerMatrix::kLinear1},
                                            {0, LayerMatrix::kLinear2}};
  std::vector<MatrixOfLayer> readers = first;
  readers.push_back({1, LayerMatrix::kQkv});
  readers.push_back({1, LayerMatrix::kLinear1});

  std::vector<float> middle;
  const std::vector<float> wanted = model.Run({}, &middle);
  const PlainSizes sizes = {kD, kHeads, kInner, kLength};
  const double exact = WorstCosine(RunPlain(model.second(), sizes, middle, Plain::kExact), wanted);
  EXPECT_GT(exact, 1 - 1e-9) << "the reference of this test is another layer";
  const double plain = WorstCosine(RunPlain(model.second(), sizes, middle, Plain::kInt8), wanted);
  EXPECT_LT(plain, 0.995) << "plain int8 loses nothing here";
  std::printf("ordinary channels, the worst token's cosine: plain int8 %.6f\n", plain);
  ForEachTarget([&](const std::string& target) {
    const double smoothed =
        WorstCosine(model.Run({.precision = Precision::kInt8, .keep = first}), wanted);
    const double kept =
        WorstCosine(model.Run({.precision = Precision::kInt8, .keep = readers}), wanted);
    std::printf("%s: smoothed %.6f, kept in bf16 %.6f\n", target.c_str(), smoothed, kept);
    EXPECT_GE(smoothed, kMended);
    EXPECT_GE(kept, kMended);
  });
}

}  // namespace
}  // namespace encore
