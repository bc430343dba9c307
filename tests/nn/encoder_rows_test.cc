// SPDX-License-Identifier: Apache-2.0
//
// Encoder::ForwardRows: the bits of Forward's rows where its last block goes other ways, taps, and
// what it refuses. Switches, thread plans and random models are held by the tests of these
// (check_model.cc, plan_ways.cc, contract_property_test.cc), allocations by encoder_alloc_test.cc.

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "reference/all_taps.h"
#include "reference/encoder_model.h"
#include "reference/switched.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/near_rounded.h"
#include "tests/support/output_rows.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// So many sequences of 1 to 5 tokens.
std::vector<size_t> ManyShort(size_t sequences) {
  std::vector<size_t> lengths;
  for (size_t b = 0; b < sequences; ++b) lengths.push_back(1 + b * 7 % 5);
  return lengths;
}

// Gathered rows are shared by columns where they are few and by rows where there are many, in more
// than one block.
TEST(EncoderRows, FewAndManySequencesOnEveryExecutor) {
  const Executors executors;
  ForEachTarget([&](const std::string& target) {
    for (const EncoderConfig& config :
         {RotaryAndGate(), BucketsAndBothNorms(), RelativeAndWindow(), LayerInputs(),
          Convolutions(), ExpertsInTurn(), ExpertsLast()}) {
      const Encoder encoder = EncoderModel(config).Make();
      for (const size_t sequences : {1, 31, 140, 600}) {
        if (kSlow && sequences > 140) continue;
        SCOPED_TRACE(testing::Message() << sequences << " sequences");
        const std::vector<size_t> starts = Starts(ManyShort(sequences));
        const Batch batch{.seq_starts = starts};
        const std::vector<float> x = RandomFloats(batch.seq_starts.back() * config.d_model, 1);
        const std::vector<float> y = Forward(encoder, batch, x);
        for (const Executors::Named& named : executors) {
          if (named.name != "inline" && target != SupportedTargets().front()) continue;
          EXPECT_TRUE(SameOutputRows(encoder, batch, x, y, named.executor)) << named.name;
        }
      }
    }
  });
}

// A row's walk along the keys begins with its query block and its tiles of keys, wherever the row
// is in the block: ends of blocks, of tiles and of windows.
TEST(EncoderRows, WalksOfTheirQueryBlocks) {
  ForEachTarget([&](const std::string&) {
    for (const size_t window : {size_t{0}, size_t{40}, size_t{64}, size_t{700}}) {
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(testing::Message() << "window " << window << ", causal " << causal);
        LayerConfig layer{.num_heads = 2, .causal = causal, .d_ff = 20};
        if (window != 0) layer.window = window;
        const Encoder encoder = EncoderModel(EncoderConfig::Uniform(16, 1, layer)).Make();
        for (const size_t length : {1, 2, 63, 64, 65, 128, 129, 300, 513, 640, 1535}) {
          const Batch batch{.seq_starts = {0, length}};
          const std::vector<float> x = RandomFloats(length * 16, 1);
          EXPECT_TRUE(SameOutputRows(encoder, batch, x, Forward(encoder, batch, x)))
              << length << " tokens";
        }
      }
    }
  });
}

// Panels of the first product that hold queries and keys, and heads that are cut by one.
TEST(EncoderRows, QueriesThatShareAPanelWithKeys) {
  const ThreadPool pool = *ThreadPool::Create({.threads = 3});
  ForEachTarget([&](const std::string&) {
    for (const size_t heads : {1, 3, 5, 6}) {
      for (const size_t head_size : {1, 7, 8, 16, 33, 64}) {
        SCOPED_TRACE(testing::Message() << heads << " heads of " << head_size);
        const EncoderConfig config = EncoderConfig::Uniform(
            24, 1, {.num_heads = heads, .num_kv_heads = 1, .head_size = head_size, .d_ff = 400});
        const Encoder encoder = EncoderModel(config).Make();
        const Batch batch{.seq_starts = {0, 40, 41, 111}};
        const std::vector<float> x = RandomFloats(111 * 24, 1);
        const std::vector<float> y = Forward(encoder, batch, x);
        EXPECT_TRUE(SameOutputRows(encoder, batch, x, y));
        EXPECT_TRUE(SameOutputRows(encoder, batch, x, y, pool.executor()));
      }
    }
  });
}

// Matrices of the mask by the tokens' own positions, as a padded batch has them.
TEST(EncoderRows, MasksWithPositions) {
  constexpr size_t kSize = 90;
  std::vector<float> add = RandomFloats(2 * kSize * kSize, 4);
  for (float& v : add) {
    if (v > 0.8f) v = -std::numeric_limits<float>::infinity();
  }
  std::vector<size_t> positions;
  for (size_t i = 0; i < 40; ++i) positions.push_back(2 * i + i % 2);
  for (size_t i = 0; i < 70; ++i) positions.push_back(89 - i);
  const AttentionMask masks[] = {
      {},
      {.causal = true, .additive = ConstView(add.data(), {kSize, kSize})},
      {.additive = ConstView(add.data(), {2, kSize, kSize})},
  };
  ForEachTarget([&](const std::string&) {
    for (const NormPlacement placement :
         {NormPlacement::kPost, NormPlacement::kPre, NormPlacement::kBoth}) {
      LayerConfig layer{.num_heads = 2, .d_ff = 30, .norm_placement = placement};
      layer.buckets = BucketConfig{};
      const EncoderConfig config = EncoderConfig::Uniform(24, 2, layer, layer.norm);
      const Encoder encoder = EncoderModel(config).Make();
      for (const AttentionMask& mask : masks) {
        const Batch batch{.seq_starts = {0, 40, 110}, .mask = mask, .positions = positions};
        const std::vector<float> x = RandomFloats(110 * 24, 1);
        EXPECT_TRUE(SameOutputRows(encoder, batch, x, Forward(encoder, batch, x)));
      }
    }
  });
}

// Taps of any layer have the bits that Forward gives them, and change none of y.
TEST(EncoderRows, Taps) {
  const EncoderConfig config = RotaryAndGate();
  const Encoder encoder = EncoderModel(config).Make();
  const std::vector<size_t> starts = Starts({17, 70});
  const Batch batch{.seq_starts = starts};
  const std::vector<float> x = RandomFloats(starts.back() * config.d_model, 1);
  const AllTaps want(config, starts);
  const std::vector<float> y = Forward(encoder, batch, x, {}, want.taps());
  const auto expect_same = [&](const AllTaps& found) {
    for (size_t i = 0; i < want.taps().hidden.size(); ++i) {
      const MutableView& hidden = found.taps().hidden[i];
      if (hidden.empty()) continue;
      const size_t count = starts.back() * config.d_model;
      EXPECT_TRUE(SameBits({hidden.data(), count}, {want.taps().hidden[i].data(), count})) << i;
    }
  };
  const AllTaps all(config, starts);
  EXPECT_TRUE(SameOutputRows(encoder, batch, x, y, {}, all.taps()));
  expect_same(all);
  for (size_t b = 0; b < 2; ++b) EXPECT_TRUE(SameBits(all.Parts(y)[b], want.Parts(y)[b])) << b;
  // Of the first layer, and of one sequence in the last.
  for (const size_t kept : {size_t{0}, size_t{3}}) {
    const AllTaps some(config, starts);
    std::vector<MutableView> attention(4);
    attention[kept] = some.taps().attention[kept];
    EXPECT_TRUE(SameOutputRows(encoder, batch, x, y, {}, {.attention = attention}));
    const MutableView& found = attention[kept];
    const size_t count = found.dim(0) * found.dim(1) * found.dim(2);
    EXPECT_TRUE(SameBits({found.data(), count}, {want.taps().attention[kept].data(), count}));
  }
}

// A good call, to be spoilt.
struct RowsCall {
  RowsCall() : x({9, 8}), y({3, 8}), workspace(*Workspace::Create(1 << 20)) {
    batch.seq_starts = starts;
    in = x.view();
    out = y.view();
  }
  std::vector<size_t> starts = {0, 4, 5, 9};
  Batch batch;
  Guarded x, y;
  MutableView in, out;
  std::vector<MutableView> hidden;
  Taps taps;
  Workspace workspace;
};

testing::AssertionResult RefusesRows(const std::function<void(RowsCall&)>& change,
                                     const std::vector<std::string>& parts) {
  const EncoderConfig config =
      TorchStack{.d_model = 8, .num_heads = 2, .d_ff = 12, .num_layers = 2};
  const Encoder encoder = EncoderModel(config).Make();
  RowsCall c;
  change(c);
  const Status status =
      encoder.ForwardRows(c.batch, OutputRows::kLast, c.in, c.out, c.workspace, {}, c.taps);
  if (!c.x.Untouched() || !c.y.Untouched()) {
    return testing::AssertionFailure() << "x or y was written: " << status.message();
  }
  return FailsWith(status, parts);
}

TEST(EncoderRows, AllRowsAreForward) {
  const EncoderConfig config = RotaryAndGate();
  const Encoder encoder = EncoderModel(config).Make();
  const Batch batch{.seq_starts = {0, 5, 5, 9}};  // a sequence without a token too
  std::vector<float> x = RandomFloats(9 * config.d_model, 1);
  const std::vector<float> y = Forward(encoder, batch, x);
  const Workspace workspace = Taken(encoder.MakeWorkspace(batch));
  const MutableView in_place(x.data(), Shape(9, config.d_model));
  ASSERT_TRUE(encoder.ForwardRows(batch, OutputRows::kAll, in_place, in_place, workspace).ok());
  EXPECT_EQ(x, y);
}

TEST(EncoderRows, RefusesBadInput) {
  EXPECT_FALSE(RefusesRows([](RowsCall&) {}, {}));  // the call is good
  EXPECT_TRUE(RefusesRows([](RowsCall& c) { c.batch.seq_starts = {}; }, {"seq_starts is empty"}));
  EXPECT_TRUE(RefusesRows(
      [](RowsCall& c) {
        c.batch.seq_starts = {0, 4, 4, 9};
      },
      {"sequence 1 has no token", "wanted at least one"}));
  EXPECT_TRUE(RefusesRows(
      [](RowsCall& c) {
        c.batch.seq_starts = {0, 9};
      },
      {"y has shape [3, 8]", "wanted [1, 8]", "a row for each sequence"}));
  EXPECT_TRUE(RefusesRows(
      [](RowsCall& c) {
        c.in = {c.in.data(), {8, 8}};
      },
      {"x has shape [8, 8]", "wanted [9, 8]"}));
  EXPECT_TRUE(RefusesRows(
      [](RowsCall& c) {
        c.in = {c.in.data(), {9, 8}, {7, 1}};
      },
      {"x has strides 7, 1", "do not overlap"}));
  EXPECT_TRUE(RefusesRows(
      [](RowsCall& c) {
        c.out = {c.out.data(), {3, 8}, {1, 3}};
      },
      {"y has strides 1, 3", "wanted contiguous rows"}));
  EXPECT_TRUE(RefusesRows(
      [](RowsCall& c) {
        c.out = {nullptr, {3, 8}};
      },
      {"y of shape [3, 8] has no"}));
  EXPECT_TRUE(RefusesRows(
      [](RowsCall& c) {
        c.out = {c.in.data() + 48, {3, 8}};
      },
      {"x and y overlap"}));
  EXPECT_TRUE(RefusesRows([](RowsCall& c) { c.out = {c.in.data(), {3, 8}}; }, {"x and y overlap"}));
  EXPECT_TRUE(RefusesRows([](RowsCall& c) { c.workspace = *Workspace::Create(64); },
                          {"workspace has 64 bytes", "9 tokens in 3 sequences on 1 threads"}));
  EXPECT_TRUE(RefusesRows(
      [](RowsCall& c) {
        c.taps.attention = c.hidden = {{}, {}};
      },
      {"taps.attention has 2 entries", "2 x 3"}));
  EXPECT_TRUE(RefusesRows(
      [](RowsCall& c) {
        c.hidden = {{}, {c.out.data(), {9, 8}}};
        c.taps.hidden = c.hidden;
      },
      {"taps.hidden[1]", "shares memory with y"}));
}

TEST(EncoderRows, NoSequencesAreNothingToDo) {
  const Encoder encoder = EncoderModel(RotaryAndGate()).Make();
  const Workspace workspace = *Workspace::Create(1 << 20);
  std::vector<float> memory(32);
  const MutableView none(memory.data(), {0, 32});
  const Status status =
      encoder.ForwardRows({.seq_starts = {0}}, OutputRows::kFirst, none, none, workspace);
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace encore
