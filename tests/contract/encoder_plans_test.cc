// SPDX-License-Identifier: Apache-2.0
//
// The numeric contract in every way that a forward pass is shared among threads: each test asks for
// one, makes sure that it is the one taken, and wants the bits of each sequence alone. Head sizes
// are such that heads lie one after another between the products, and such that they do not. And
// weights packed by several threads.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "reference/drawn.h"
#include "reference/encoder_model.h"
#include "tests/contract/plan_ways.h"
#include "tests/support/compare.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// Calls f(config) for head sizes that are a multiple of each target's vectors and that are of
// none, pre-norm and post-norm, on each target.
template <typename F>
void ForEachModel(const F& f) {
  ForEachTarget([&](const std::string&) {
    for (const size_t size : {16, 64, 25, 30, 65}) {
      if (kSlow && size != 16 && size != 25) continue;
      for (const bool norm_first : {false, true}) {
        SCOPED_TRACE(testing::Message() << "head size " << size << ", norm_first " << norm_first);
        f(TorchStack{.d_model = 3 * size,
                     .num_heads = 3,
                     .d_ff = 301,
                     .num_layers = 2,
                     .activation = norm_first ? Activation::kRelu : Activation::kGelu,
                     .norm_first = norm_first,
                     .final_norm = norm_first});
      }
    }
  });
}
TEST(EncoderPlans, SequencesInOwnWindows) {
  // Groups of several sequences, most of whose rows are no multiple of 16.
  std::vector<size_t> lengths;
  for (size_t i = 0; i < 40; ++i) lengths.push_back(i % 10 == 9 ? 0 : 17 + i * 7 % 13);
  ForEachModel([&](const EncoderConfig& config) {
    ExpectWay(Way::kSequencesInOwnWindows, config, lengths, 2);
    ExpectWay(Way::kSequencesInOwnWindows, config, lengths, 1);
  });
}

TEST(EncoderPlans, SequencesInPlace) {
  ForEachModel([&](const EncoderConfig& config) {
    ExpectWay(Way::kSequencesInPlace, config, {100, 0, 100}, 2);
    ExpectWay(Way::kSequencesInPlace, config, {150, 150, 150}, 3);
    ExpectWay(Way::kSequencesInPlace, config, {100}, 1);
  });
  // Rows of q, k and v that fill whole lines, with heads that do not fill whole vectors: what is
  // read past the last head's end must not be the next thread's.
  ForEachTarget([&](const std::string&) {
    for (const size_t heads : {8, 16}) {
      ExpectWay(Way::kSequencesInPlace,
                TorchStack{.d_model = 6 * heads, .num_heads = heads, .d_ff = 301}, {100, 100}, 2);
    }
  });
}

TEST(EncoderPlans, RowsWithAttention) {
  ForEachModel([&](const EncoderConfig& config) {
    // Blocks of rows that end inside of sequences, blocks of queries and tiles of keys.
    ExpectWay(Way::kRowsWithAttention, config, {70, 70, 0, 70}, 2);
    ExpectWay(Way::kRowsWithAttention, config, {530}, 3);
  });
}

TEST(EncoderPlans, RowsAttentionApart) {
  ForEachModel([&](const EncoderConfig& config) {
    ExpectWay(Way::kRowsAttentionApart, config, {1, 530, 0, 65}, 2);
    ExpectWay(Way::kRowsAttentionApart, config, {300, 40}, 3, {.causal = true});
  });
}

TEST(EncoderPlans, ColumnsInSteps) {
  ForEachModel([&](const EncoderConfig& config) {
    ExpectWay(Way::kColumnsInSteps, config, {50}, 2);  // 3 heads on 2 threads
    EncoderConfig more = config;
    for (LayerConfig& layer : more.layers) layer.d_ff = 3001;
    ExpectWay(Way::kColumnsInSteps, more, {13, 0, 1, 31}, 4);
  });
}

// Heads are as many as let threads have whole panels of the first product, if some number does.
TEST(EncoderPlans, ColumnsHeadsTogether) {
  ForEachTarget([&](const std::string& target) {
    size_t sizes = 0;
    for (const size_t size : {16, 32, 64, 80}) {
      for (const int threads : {2, 3}) {
        TorchStack stack{.d_ff = 500, .num_layers = 2};
        for (size_t heads = 6; heads <= 24 && stack.d_model == 0; heads += 6) {
          TorchStack some = stack;
          some.num_heads = heads;
          some.d_model = heads * size;
          if (HeadsTogether(some, static_cast<size_t>(threads))) stack = some;
        }
        if (stack.d_model == 0) continue;
        SCOPED_TRACE(testing::Message()
                     << stack.num_heads << " heads of " << size << ", " << threads << " threads");
        ++sizes;
        ExpectWay(Way::kColumnsHeadsTogether, stack, {50}, threads);
        stack.norm_first = stack.final_norm = true;
        ExpectWay(Way::kColumnsHeadsTogether, stack, {7, 0, 40}, threads);
      }
    }
    std::printf("%s: %zu sizes of heads and threads\n", target.c_str(), sizes);
    EXPECT_GE(sizes, 2u);
  });
}

// Weights packed by many threads are those packed by one, more threads than panels included.
TEST(EncoderCreate, TheSameBitsWhoeverPacks) {
  for (const size_t width : {24, 70, 192}) {
    const EncoderModel model({.d_model = width,
                              .num_heads = 2,
                              .d_ff = 301,
                              .num_layers = 3,
                              .activation = Activation::kSilu,
                              .final_norm = true});
    const std::vector<size_t> starts = Starts({40, 3});
    const std::vector<float> x = RandomFloats(43 * width, 1);
    ForEachTarget([&](const std::string& target) {
      const Encoder inlined =
          Taken(Encoder::Create(model.config(), model.weights(), {.executor = Executor::Inline()}));
      const std::vector<float> want = Forward(inlined, Batch{starts}, x);
      for (const int threads : {2, 3, 30}) {
        const ThreadPool pool = Taken(ThreadPool::Create({.threads = threads}));
        for (const Executor& executor : {pool.executor(), Executor::OpenMP(threads)}) {
          const Encoder encoder =
              Taken(Encoder::Create(model.config(), model.weights(), {.executor = executor}));
          EXPECT_EQ(encoder.target(), target);
          EXPECT_TRUE(SameBits(Forward(encoder, Batch{starts}, x), want))
              << threads << " threads, width " << width;
        }
      }
    });
  }
}

}  // namespace
}  // namespace encore
