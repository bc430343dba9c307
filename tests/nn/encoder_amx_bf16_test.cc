// SPDX-License-Identifier: Apache-2.0
//
// EncoderOptions::amx_bf16: where it has an effect, the bits of a sequence are as independent of
// all else as without it, and results as exact; elsewhere nothing changes.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "engine/platform/amx.h"
#include "gtest/gtest.h"
#include "reference/drawn.h"
#include "reference/encoder.h"
#include "reference/encoder_model.h"
#include "reference/sequences.h"
#include "tests/support/compare.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

const EncoderOptions kPlain = {.precision = Precision::kBF16};
EncoderOptions WithAmx() {
  EncoderOptions options = kPlain;
  options.amx_bf16 = true;
  return options;
}

constexpr size_t kWidth = 96;
// Around a tile of 16 rows and blocks of 32, more than one row block and one tile of keys.
const std::vector<size_t> kLengths = {1, 2, 15, 16, 17, 33, 130, 545};

LayerConfig Layer(size_t d_ff, Gate gate = Gate::kNone) {
  return {.num_heads = 3, .d_ff = d_ff, .activation = Activation::kGelu, .gate = gate};
}

// Slices of K, panels that are not full, a gate, and inputs that are no multiple of 32.
std::deque<EncoderModel> Models() {
  std::deque<EncoderModel> models;
  models.emplace_back(EncoderConfig::Uniform(kWidth, 2, Layer(4128)));
  models.emplace_back(EncoderConfig::Uniform(kWidth, 2, Layer(224, Gate::kFirstHalf)));
  models.emplace_back(EncoderConfig::Uniform(kWidth, 1, Layer(100)));
  LayerConfig causal = Layer(64);
  causal.causal = true;
  models.emplace_back(EncoderConfig::Uniform(kWidth, 1, causal));
  LayerConfig window = Layer(64);
  window.window = 40;
  models.emplace_back(EncoderConfig::Uniform(kWidth, 1, window));
  return models;
}

std::vector<float> RowsOf(const std::vector<float>& all, size_t begin, size_t end) {
  return {all.begin() + static_cast<ptrdiff_t>(begin * kWidth),
          all.begin() + static_cast<ptrdiff_t>(end * kWidth)};
}

class EncoderAmxBf16 : public testing::Test {
 protected:
  void SetUp() override {
    if (!internal::UseAmxBf16()) GTEST_SKIP() << "this machine has no AMX for bf16";
  }
  const std::vector<size_t> starts_ = Starts(kLengths);
  const std::vector<float> x_ = RandomFloats(starts_.back() * kWidth, 1);
};

TEST_F(EncoderAmxBf16, ASequenceHasTheBitsThatItHasAlone) {
  const ThreadPool pool = *ThreadPool::Create({.threads = 3});
  for (const EncoderModel& model : Models()) {
    const Encoder encoder = model.Make(WithAmx());
    ASSERT_TRUE(encoder.amx_bf16());
    const std::vector<float> together = Forward(encoder, Batch{starts_}, x_);
    EXPECT_TRUE(SameBits(Forward(encoder, Batch{starts_}, x_, pool.executor()), together));
    EXPECT_TRUE(SameBits(Forward(encoder, Batch{starts_}, x_, Executor::OpenMP(2)), together));
    std::vector<float> poisoned = x_;
    poisoned.back() = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> beside = Forward(encoder, Batch{starts_}, poisoned);
    for (size_t b = 0; b < kLengths.size(); ++b) {
      SCOPED_TRACE(std::to_string(kLengths[b]) + " tokens");
      const std::vector<float> want = RowsOf(together, starts_[b], starts_[b + 1]);
      const std::vector<float> alone = RowsOf(x_, starts_[b], starts_[b + 1]);
      const Batch one{.seq_starts = {0, kLengths[b]}};
      EXPECT_TRUE(SameBits(Forward(encoder, one, alone), want));
      const bool is_last = b + 1 == kLengths.size();
      EXPECT_EQ(SameBits(RowsOf(beside, starts_[b], starts_[b + 1]), want) ? 1 : 0,
                is_last ? 0 : 1);
    }
  }
}

// The bound of bf16 in encoder_precision_test.cc.
TEST_F(EncoderAmxBf16, AsExactAsWithout) {
  const std::vector<size_t> lengths = {1, 17, 70};
  const std::vector<size_t> starts = Starts(lengths);
  const std::vector<float> x = RandomFloats(starts.back() * kWidth, 2);
  for (const size_t d_ff : {224, 100}) {
    const EncoderModel model(EncoderConfig::Uniform(kWidth, 2, Layer(d_ff, Gate::kFirstHalf)));
    std::vector<double> want;
    for (size_t b = 0; b < lengths.size(); ++b) {
      const ConstView sequence(x.data() + starts[b] * kWidth, Shape(lengths[b], kWidth));
      const auto result = reference::Encode<double>(model.config(), model.weights(), sequence);
      want.insert(want.end(), result.y.data.begin(), result.y.data.end());
    }
    const std::vector<float> without = Forward(model.Make(kPlain), Batch{starts}, x);
    const std::vector<float> with = Forward(model.Make(WithAmx()), Batch{starts}, x);
    EXPECT_FALSE(SameBits(with, without)) << "it was not used";
    double error = 0;
    double error_without = 0;
    double size = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      error += (with[i] - want[i]) * (with[i] - want[i]);
      error_without += (without[i] - want[i]) * (without[i] - want[i]);
      size += want[i] * want[i];
    }
    EXPECT_LE(std::sqrt(error / size), 1.2e-2);
    EXPECT_LE(std::sqrt(error), 1.1 * std::sqrt(error_without));
  }
}

// Also of int8, whose attention is in bf16; and the bits of the first machine that had it.
TEST_F(EncoderAmxBf16, Int8AndPublishedBits) {
  const EncoderModel model(EncoderConfig::Uniform(kWidth, 1, Layer(224)));
  EncoderOptions int8 = WithAmx();
  int8.precision = Precision::kInt8;
  EXPECT_TRUE(model.Make(int8).amx_bf16());
  for (const bool kept : {false, true}) {
    if (kept) int8.keep = {{0, LayerMatrix::kLinear2}};
    EncoderOptions without = int8;
    without.amx_bf16 = false;
    EXPECT_FALSE(SameBits(Forward(model.Make(int8), Batch{starts_}, x_),
                          Forward(model.Make(without), Batch{starts_}, x_)))
        << "it was not used";
  }
  EXPECT_EQ(HashBits(Forward(model.Make(WithAmx()), Batch{starts_}, x_)), 0xAEDB7D2080C808CFu);
}

TEST(EncoderAmxBf16Elsewhere, HasNoEffect) {
  const std::vector<size_t> starts = Starts({17, 40});
  const std::vector<float> x = RandomFloats(starts.back() * kWidth, 1);
  const EncoderModel model(EncoderConfig::Uniform(kWidth, 1, Layer(224)));
  ForEachTarget([&](const std::string& target) {
    EXPECT_FALSE(model.Make(kPlain).amx_bf16());
    EncoderOptions f32 = WithAmx();
    f32.precision = Precision::kF32;
    EXPECT_FALSE(model.Make(f32).amx_bf16());
    const Encoder encoder = model.Make(WithAmx());
    if (target == "AMX" && internal::UseAmxBf16()) return;
    EXPECT_FALSE(encoder.amx_bf16());
    EXPECT_TRUE(SameBits(Forward(encoder, Batch{starts}, x),
                         Forward(model.Make(kPlain), Batch{starts}, x)));
  });
}

}  // namespace
}  // namespace encore
