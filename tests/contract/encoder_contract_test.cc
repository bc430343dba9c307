// SPDX-License-Identifier: Apache-2.0
//
// The numeric contract: a sequence's output has the same bits whatever the batch, its place and its
// other sequences, the executor and its threads, the SIMD target with FMA, and the caller's
// floating-point modes. Runs are compared with each other alone; what is right is in
// encoder_test.cc.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ios>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/encoder.h"
#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/caller_modes.h"
#include "reference/encoder_model.h"
#include "tests/support/attention_case.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// Some sequences, to be put together into batches.
class Sequences {
 public:
  Sequences(const std::vector<size_t>& lengths, size_t width) : width_(width) {
    for (const size_t length : lengths) {
      x_.push_back(RandomFloats(length * width, static_cast<uint32_t>(100 + x_.size())));
    }
  }
  size_t count() const { return x_.size(); }
  std::vector<float>& x(size_t i) { return x_[i]; }

  // Runs those of the order's numbers as one batch; the outputs come in the order's order.
  std::vector<std::vector<float>> RunBatch(const Encoder& encoder, const std::vector<size_t>& order,
                                           const Executor& executor = {},
                                           const AttentionMask& mask = {}) const {
    const JoinedSequences joined = Join(x_, order, width_);
    const Batch batch{.seq_starts = joined.starts, .mask = mask};
    return Split(Forward(encoder, batch, joined.x, executor), joined.starts, width_);
  }

 private:
  size_t width_;
  std::vector<std::vector<float>> x_;
};

// One executor of each kind, where all of them take too long.
bool FirstOfItsKind(const std::string& name) {
  return name == "inline" || name == "OpenMP 3" || name == "host pool 2" || name == "pool 3";
}

// Every sequence alone and inline is what all others must equal: in batches of many orders, on all
// executors, on all targets with FMA. Targets without it keep the promise among themselves.
void CheckPrecision(const EncoderModel& model, Precision precision,
                    const std::vector<size_t>& lengths, const AttentionMask& mask) {
  SCOPED_TRACE(PrecisionName(precision));
  const Sequences sequences(lengths, model.config().d_model);
  const Executors executors;
  std::vector<size_t> all(sequences.count());
  std::iota(all.begin(), all.end(), size_t{0});
  std::vector<std::vector<size_t>> orders = {
      all, {all.rbegin(), all.rend()}, {all.back(), all.back()}};
  std::vector<uint64_t> with_fma;  // hash of each sequence
  ForEachTarget([&](const std::string& target) {
    // Executors share rows in the same ways in all precisions.
    const bool best = target == SupportedTargets().front() && precision == Precision::kF32;
    const Encoder encoder = model.Make({.precision = precision});
    ASSERT_EQ(encoder.target(), target);
    std::vector<uint64_t> hashes;
    for (const size_t i : all)
      hashes.push_back(HashBits(sequences.RunBatch(encoder, {i}, {}, mask)[0]));
    if (reference::TargetHasFma(target)) {
      if (with_fma.empty()) with_fma = hashes;
      EXPECT_EQ(hashes, with_fma) << target << " gives other bits than "
                                  << SupportedTargets().front();
    }
    for (const auto& [name, executor] : executors) {
      if ((!best || kEmulated) && !FirstOfItsKind(name)) continue;
      if (precision != Precision::kF32 && target != SupportedTargets().front()) continue;
      for (const std::vector<size_t>& order : orders) {
        const std::vector<std::vector<float>> y =
            sequences.RunBatch(encoder, order, executor, mask);
        for (size_t b = 0; b < order.size(); ++b) {
          EXPECT_EQ(HashBits(y[b]), hashes[order[b]])
              << name << ", sequence " << order[b] << " of length " << lengths[order[b]]
              << " at place " << b << " of " << order.size();
        }
      }
    }
  });
}

void CheckContract(const EncoderModel& model, const std::vector<size_t>& lengths,
                   const AttentionMask& mask = {}) {
  for (const Precision precision : kPrecisions) CheckPrecision(model, precision, lengths, mask);
}

// Lengths around vectors, blocks of 64 queries and tiles of 512 keys.
TEST(EncoderContract, LengthsAroundEveryTile) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const EncoderModel model({.d_model = 64, .num_heads = 1, .d_ff = 100});
  CheckContract(model, kSlow ? std::vector<size_t>{1, 17, 64, 65, 0, 513}
                             : std::vector<size_t>{1, 17, 64, 65, 0, 511, 512, 513, 1100});
}

TEST(EncoderContract, SizesOfHeads) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const size_t longest = kSlow ? 130 : 520;
  for (const size_t size : {8, 14, 32, 72, 80, 128}) {
    SCOPED_TRACE(testing::Message() << "head size " << size);
    const EncoderModel model({.d_model = 2 * size,
                              .num_heads = 2,
                              .d_ff = 100,
                              .activation = Activation::kGelu,
                              .norm_first = size % 16 == 0});
    CheckContract(model, {1, 17, 65, longest, 64});
  }
}

// K beyond one slice in linear2, N that no panel divides, several layers, every activation.
TEST(EncoderContract, WideAndDeep) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  for (const Activation activation :
       {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh, Activation::kSilu}) {
    SCOPED_TRACE(ActivationName(activation));
    const EncoderModel model({.d_model = 28,
                              .num_heads = 2,
                              .d_ff = 1101,
                              .num_layers = 2,
                              .activation = activation,
                              .norm_first = activation == Activation::kSilu,
                              .final_norm = true});
    CheckContract(model, {1, 3, 40, 2});
  }
}

TEST(EncoderContract, WideModel) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const EncoderModel model({.d_model = 1040, .num_heads = 13, .d_ff = 100});
  CheckContract(model, {3, 1, 30});
}

// Tokens at which rows are cut in another way: a block has at most 128 rows, a thread wants 32 or
// more.
TEST(EncoderContract, TokensAroundChangesOfThePlan) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const EncoderModel model(
      {.d_model = 16, .num_heads = 2, .d_ff = 36, .activation = Activation::kGelu});
  // Where all is slow: below, at and above the second thread and the second block, and many blocks.
  const std::vector<size_t> sizes =
      kSlow ? std::vector<size_t>{63, 64, 65, 127, 128, 129, 897}
            : std::vector<size_t>{31,  32,  33,  63,  64,  65,  95,  96,  97,  127, 128, 129,
                                  223, 224, 225, 255, 256, 257, 385, 447, 448, 449, 897};
  for (const size_t tokens : sizes) {
    SCOPED_TRACE(testing::Message() << tokens << " tokens");
    CheckContract(model, {tokens - 20, 13, 7});
  }
}

TEST(EncoderContract, Masks) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const Masks masks(530, 530);
  for (const bool causal : {false, true}) {
    AttentionMask mask;
    mask.causal = causal;
    if (!causal) mask.blocked = masks.blocked();
    mask.additive = masks.additive();
    CheckContract(EncoderModel({.d_model = 24, .num_heads = 2, .d_ff = 10}), {530, 1, 65, 64},
                  mask);
  }
}

// What is wrong with one sequence is no other's business.
TEST(EncoderContract, NanAndInfinityReachTheirSequenceAlone) {
  for (const bool norm_first : {false, true}) {
    const EncoderModel model(
        {.d_model = 24, .num_heads = 2, .d_ff = 100, .norm_first = norm_first});
    Sequences clean({30, 70, 1, 513, 9}, 24);
    Sequences poisoned = clean;
    for (const size_t i : {size_t{1}, size_t{2}, size_t{3}}) {
      poisoned.x(i)[5] = NAN;
      poisoned.x(i).back() = std::numeric_limits<float>::infinity();
      poisoned.x(i)[9] = std::numeric_limits<float>::max();
    }
    const Executors executors;
    ForEachTarget([&](const std::string&) {
      const Encoder encoder = model.Make();
      for (const auto& [name, executor] : executors) {
        if (kEmulated && !FirstOfItsKind(name)) continue;
        const auto want = clean.RunBatch(encoder, {0, 1, 2, 3, 4}, executor);
        const auto got = poisoned.RunBatch(encoder, {0, 1, 2, 3, 4}, executor);
        EXPECT_TRUE(SameBits(got[0], want[0])) << name;
        EXPECT_TRUE(SameBits(got[4], want[4])) << name;
        for (const float v : got[1]) EXPECT_TRUE(std::isnan(v)) << "a NaN was lost";
      }
    });
  }
}

// y may be x itself.
TEST(EncoderContract, InPlace) {
  for (const bool norm_first : {false, true}) {
    const EncoderModel model({.d_model = 24,
                              .num_heads = 2,
                              .d_ff = 100,
                              .num_layers = 2,
                              .norm_first = norm_first,
                              .final_norm = norm_first});
    const Executors executors;
    for (const size_t tokens : {5, 150, 600}) {
      const std::vector<size_t> starts = Starts({3, tokens - 3});
      const Batch batch{.seq_starts = starts};
      const std::vector<float> x = RandomFloats(tokens * 24, 1);
      const Encoder encoder = model.Make();
      const std::vector<float> want = Forward(encoder, batch, x);
      for (const auto& [name, executor] : executors) {
        if (kEmulated && !FirstOfItsKind(name)) continue;
        // Rows with gaps, which nobody must write.
        Guarded both({tokens, 24}, {29, 1});
        for (size_t i = 0; i < x.size(); ++i) both.view()(i / 24, i % 24) = x[i];
        Workspace workspace = Taken(encoder.MakeWorkspace(batch, executor));
        const Status status = encoder.Forward(batch, both.view(), both.view(), workspace, executor);
        ASSERT_TRUE(status.ok()) << status.message();
        std::vector<float> got;
        for (size_t i = 0; i < x.size(); ++i) got.push_back(both.view()(i / 24, i % 24));
        EXPECT_TRUE(SameBits(got, want)) << name << ", " << tokens << " tokens";
        EXPECT_TRUE(both.Intact());
      }
    }
  }
}

// The encoder keeps the target it was made for.
TEST(EncoderContract, KeepsItsTarget) {
  const EncoderModel model(
      {.d_model = 24, .num_heads = 2, .d_ff = 100, .activation = Activation::kGelu});
  const std::vector<size_t> starts = Starts({40});
  const std::vector<float> x = RandomFloats(40 * 24, 1);
  for (const std::string& target : SupportedTargets()) {
    ASSERT_TRUE(SetTarget(target).ok());
    const Encoder encoder = model.Make();
    const std::vector<float> want = Forward(encoder, Batch{starts}, x);
    ForEachTarget([&](const std::string&) {
      EXPECT_EQ(encoder.target(), target);
      EXPECT_TRUE(SameBits(Forward(encoder, Batch{starts}, x), want)) << "made for " << target;
    });
  }
}

// A caller that flushes denormals to zero and rounds up gets the same bits, and its state back.
TEST(EncoderContract, TheCallersFloatingPointModes) {
  if (!reference::kHaveCallerModes) GTEST_SKIP() << "no modes to try on this machine";
  const EncoderModel model({.d_model = 24,
                            .num_heads = 2,
                            .d_ff = 100,
                            .activation = Activation::kGelu,
                            .norm_first = true});
  // Denormal inputs, which the residual connections carry to the output.
  std::vector<float> x = RandomFloats(200 * 24, 1);
  for (size_t i = 0; i < x.size(); i += 3) x[i] *= 1e-39f;
  const std::vector<size_t> starts = Starts({150, 50});
  const Executors executors;
  ForEachTarget([&](const std::string&) {
    const Encoder encoder = model.Make();
    const std::vector<float> want = Forward(encoder, Batch{starts}, x);
    const std::vector<float> denormals(24, 1e-40f);
    std::vector<float> product(1), want_product(1);
    const std::vector<float> ones(24, 1.0f);
    ASSERT_TRUE(
        MatMul({denormals.data(), {1, 24}}, {ones.data(), {24, 1}}, {want_product.data(), {1, 1}})
            .ok());
    ASSERT_NE(want_product[0], 0.0f);
    for (const auto& [name, executor] : executors) {
      const uint64_t before = reference::CallerState();
      reference::SetCallerState(reference::kFlushAndRoundUp);
      volatile float flushed = 1e-30f;  // that the modes do something at all
      flushed = flushed * 1e-10f;
      reference::SetCallerState(reference::kFlushAndRoundUp);  // without the flags of that
      const std::vector<float> got = Forward(encoder, Batch{starts}, x, executor);
      MatMulOptions options;
      options.executor = executor;
      const Status status = MatMul({denormals.data(), {1, 24}}, {ones.data(), {24, 1}},
                                   {product.data(), {1, 1}}, options);
      const uint64_t after = reference::CallerState();
      reference::SetCallerState(before);
      EXPECT_EQ(flushed, 0.0f);
      EXPECT_TRUE(status.ok());
      EXPECT_TRUE(SameBits(got, want)) << name;
      EXPECT_TRUE(SameBits(product, want_product)) << name;
      EXPECT_EQ((after ^ reference::kFlushAndRoundUp) & reference::KeptState(executor), 0u)
          << name << " left " << std::hex << after;
    }
  });
}

}  // namespace
}  // namespace encore
