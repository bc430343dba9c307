// SPDX-License-Identifier: Apache-2.0
//
// Encoders of integers whose products are long and wide enough for kernels that take many rows at
// once: the bits of every target are the same, and a sequence's those that it has alone.

#include <cstddef>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/encoder_model.h"
#include "reference/sequences.h"
#include "tests/support/compare.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// Around blocks of 16 and 32 rows, and more than one row block.
constexpr size_t kManyLengths[] = {1, 31, 32, 33, 130, 15};
constexpr size_t kManyWidth = 256;

void CheckPrecision(const LayerConfig& layer, Precision precision) {
  const EncoderModel model(EncoderConfig::Uniform(kManyWidth, 1, layer));
  const std::vector<size_t> starts = Starts({std::begin(kManyLengths), std::end(kManyLengths)});
  const std::vector<float> x = RandomFloats(starts.back() * kManyWidth, 1);
  const ThreadPool pool = *ThreadPool::Create({.threads = 2});
  std::vector<float> wanted;
  ForEachTarget([&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    const Encoder encoder = model.Make({.precision = precision});
    ASSERT_EQ(encoder.target(), target);
    const std::vector<float> together = Forward(encoder, Batch{starts}, x);
    if (wanted.empty()) wanted = together;
    EXPECT_TRUE(SameBits(together, wanted));
    EXPECT_TRUE(SameBits(Forward(encoder, Batch{starts}, x, pool.executor()), wanted));
    for (size_t b = 0; b + 1 < starts.size(); ++b) {
      const auto begin = static_cast<ptrdiff_t>(starts[b] * kManyWidth);
      const auto end = static_cast<ptrdiff_t>(starts[b + 1] * kManyWidth);
      const Batch one{.seq_starts = {0, kManyLengths[b]}};
      const std::vector<float> alone = Forward(encoder, one, {x.begin() + begin, x.begin() + end});
      EXPECT_TRUE(SameBits(alone, std::vector<float>(wanted.begin() + begin, wanted.begin() + end)))
          << kManyLengths[b] << " tokens";
    }
  });
}

void Check(const LayerConfig& layer) {
  for (const Precision precision : {Precision::kInt8, Precision::kInt4}) {
    SCOPED_TRACE(PrecisionName(precision));
    CheckPrecision(layer, precision);
  }
}

TEST(EncoderManyRows, PostNorm) {
  Check({.num_heads = 4, .d_ff = 1024, .activation = Activation::kGelu});
}

// A gate, an input of the second product that is whole steps of no kernel, grouped heads.
TEST(EncoderManyRows, PreNormWithGate) {
  Check({.num_heads = 4,
         .num_kv_heads = 2,
         .d_ff = 580,
         .activation = Activation::kSilu,
         .gate = Gate::kFirstHalf,
         .norm_placement = NormPlacement::kPre});
}

// More than one slice of k, the last one shorter.
TEST(EncoderManyRows, SeveralSlices) {
  Check({.num_heads = 4, .d_ff = 8320, .activation = Activation::kRelu});
}

}  // namespace
}  // namespace encore
