// SPDX-License-Identifier: Apache-2.0
//
// The pure function that shares a forward pass among threads: every sequence and row is in exactly
// one task, tasks have the sizes and the order that are promised, each kind of plan comes where it
// is meant to, and nothing is written past the room that is asked for.

#include "engine/nn/thread_plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "engine/base/int_math.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"

namespace encore::inline v0_1::internal {
namespace {

const ModelSizes kBertBase(TorchStack{.d_model = 768, .num_heads = 12, .d_ff = 3072});
const ModelSizes kSmall(TorchStack{.d_model = 64, .num_heads = 4, .d_ff = 100});
constexpr CacheSizes kCaches{.l1d = 32 << 10, .l2 = 1 << 20, .l3 = 32 << 20};

// A plan together with what it was made for. The words it points to lie between guards.
class Planned {
 public:
  Planned(const ModelSizes& sizes, const std::vector<size_t>& lengths, size_t max_threads,
          const CacheSizes& caches = kCaches, bool are_uneven = false)
      : model(sizes), starts(Starts(lengths)), threads(max_threads), uneven(are_uneven) {
    const size_t room = ThreadPlanWords(lengths.size(), threads);
    memory_.assign(room + 2 * kGuards, kFill);
    plan = ChooseThreadPlan(model, starts, threads, caches, memory_.data() + kGuards, uneven);
  }

  size_t sequences() const { return starts.size() - 1; }
  size_t length(size_t b) const { return starts[b + 1] - starts[b]; }
  size_t group_rows(size_t g) const {
    return starts[plan.task_starts[g + 1]] - starts[plan.task_starts[g]];
  }
  bool GuardsIntact() const {
    const auto is_fill = [](size_t word) { return word == kFill; };
    return std::all_of(memory_.begin(), memory_.begin() + kGuards, is_fill) &&
           std::all_of(memory_.end() - kGuards, memory_.end(), is_fill);
  }
  double total_flops() const {
    double flops = 0;
    for (size_t b = 0; b < sequences(); ++b) flops += model.FlopsOfLayer(length(b));
    return flops;
  }
  // How much longer than in a perfect world the busiest thread works, if each takes the next group
  // in order as it gets free.
  double Imbalance() const {
    std::vector<double> loads(plan.threads, 0.0);
    for (size_t i = 0; i < plan.tasks; ++i) {
      double& least = *std::min_element(loads.begin(), loads.end());
      const size_t g = plan.order[i];
      for (size_t b = plan.task_starts[g]; b < plan.task_starts[g + 1]; ++b) {
        least += model.FlopsOfLayer(length(b));
      }
    }
    return *std::max_element(loads.begin(), loads.end()) / total_flops() *
           static_cast<double>(plan.threads);
  }

  const ModelSizes model;
  const std::vector<size_t> starts;
  const size_t threads;
  const bool uneven;
  ThreadPlan plan;

 private:
  static constexpr ptrdiff_t kGuards = 64;
  static constexpr size_t kFill = 0x5EED5EED5EED;
  std::vector<size_t> memory_;
};

// That `order` holds each of 0 .. count - 1 once, and that what of(order[i]) says never rises.
template <typename Of>
void CheckOrder(const size_t* order, size_t count, const Of& of) {
  std::vector<int> times(count, 0);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_LT(order[i], count);
    ++times[order[i]];
    if (i > 0) {
      EXPECT_GE(of(order[i - 1]), of(order[i])) << "at place " << i;
    }
  }
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(times[i], 1) << "number " << i;
}

void CheckGroups(const Planned& p) {
  const ThreadPlan& plan = p.plan;
  ASSERT_GE(plan.tasks, 1u);
  ASSERT_LE(plan.tasks, p.sequences());
  EXPECT_EQ(plan.task_starts[0], 0u);
  EXPECT_EQ(plan.task_starts[plan.tasks], p.sequences());
  size_t rows = 0;
  size_t sequences = 0;
  for (size_t g = 0; g < plan.tasks; ++g) {
    ASSERT_LT(plan.task_starts[g], plan.task_starts[g + 1]) << "an empty task";
    rows = std::max(rows, p.group_rows(g));
    sequences = std::max(sequences, plan.task_starts[g + 1] - plan.task_starts[g]);
  }
  EXPECT_EQ(plan.max_task_rows, rows);
  EXPECT_EQ(plan.max_task_sequences, sequences);
  // One thread takes them as they come in memory.
  CheckOrder(plan.order, plan.tasks,
             [&](size_t g) { return plan.threads == 1 ? 0 : p.group_rows(g); });
}

void CheckRowBlocks(const Planned& p) {
  const EvenSplit& blocks = p.plan.row_blocks;
  EXPECT_EQ(blocks.count, p.starts.back());
  EXPECT_EQ(blocks.begin(0), 0u);
  EXPECT_EQ(blocks.begin(blocks.parts), p.starts.back());
  EXPECT_EQ(blocks.parts % p.plan.threads, 0u);
  for (size_t i = 0; i < blocks.parts; ++i) {
    const size_t rows = blocks.begin(i + 1) - blocks.begin(i);
    EXPECT_GE(rows, p.uneven ? kRowsOfSmallBlock : 32u);
    EXPECT_LE(rows, kRowsOfTask);
  }
  CheckOrder(p.plan.order, p.sequences(), [&](size_t b) { return p.length(b); });
}

// What holds for every plan.
void CheckPlan(const Planned& p) {
  EXPECT_TRUE(p.GuardsIntact());
  EXPECT_GE(p.plan.threads, 1u);
  EXPECT_LE(p.plan.threads, p.threads);
  switch (p.plan.kind) {
    case ThreadPlanKind::kSequences:
      CheckGroups(p);
      EXPECT_LE(p.plan.threads * std::min(p.plan.max_task_rows, kRowsOfTask),
                RowsOfAllBlocks(p.starts.back(), p.threads));
      // Another plan costs about 6 percent in waiting. Costs are compared in thousands of
      // operations, so that each sequence may be off by one.
      EXPECT_TRUE(p.plan.threads == 1 ||
                  p.Imbalance() <= 1.06 + 1e3 *
                                              static_cast<double>(p.sequences() * p.plan.threads) /
                                              p.total_flops())
          << p.Imbalance();
      break;
    case ThreadPlanKind::kRows:
      EXPECT_TRUE(p.plan.threads > 1 || p.plan.attention_apart);
      EXPECT_LE(p.plan.threads * DivCeil(p.starts.back(), p.plan.row_blocks.parts),
                RowsOfAllBlocks(p.starts.back(), p.threads));
      CheckRowBlocks(p);
      break;
    case ThreadPlanKind::kColumns:
      EXPECT_GT(p.plan.threads, 1u);
      EXPECT_LE(p.starts.back(), RowsOfAllBlocks(p.starts.back(), p.plan.threads));
      break;
  }
}

std::vector<size_t> LognormalLengths(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<size_t> lengths;
  for (size_t i = 0; i < count; ++i) {
    // Box and Muller's transform, since std::lognormal_distribution is each library's own.
    const double u = (static_cast<double>(random()) + 1) / 4294967297.0;
    const double v = static_cast<double>(random()) / 4294967296.0;
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
    lengths.push_back(static_cast<size_t>(std::clamp(std::exp(4 + 0.8 * normal), 8.0, 512.0)));
  }
  return lengths;
}

TEST(ThreadPlan, EveryBatchOnAnyThreads) {
  std::mt19937 random(1);
  size_t kinds[3] = {};
  for (const size_t count : {1, 2, 3, 5, 8, 17, 64, 300}) {
    for (const size_t longest : {0, 1, 20, 100, 513, 3000}) {
      for (const bool equal : {false, true}) {
        std::vector<size_t> lengths(count, longest);
        if (!equal) {
          for (size_t& length : lengths) length = random() % 4 == 0 ? 0 : random() % (longest + 1);
        }
        for (const ModelSizes& model : {kBertBase, kSmall}) {
          for (const size_t threads : {1, 2, 3, 4, 7, 16, 64}) {
            SCOPED_TRACE(testing::Message()
                         << count << " sequences of " << (equal ? "" : "up to ") << longest << ", "
                         << threads << " threads, d_model " << model.d_model);
            const Planned p(model, lengths, threads);
            CheckPlan(p);
            CheckPlan(Planned(model, lengths, threads, kCaches, /*are_uneven=*/true));
            ++kinds[static_cast<size_t>(p.plan.kind)];
            if (testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
  for (const size_t plans : kinds) EXPECT_GT(plans, 20u);
}

TEST(ThreadPlan, OneThreadTakesSequences) {
  for (const auto& lengths :
       {std::vector<size_t>{2000}, {5}, {30, 0, 700, 1}, std::vector<size_t>(100, 33)}) {
    const Planned p(kBertBase, lengths, 1);
    EXPECT_EQ(p.plan.kind, ThreadPlanKind::kSequences);
    EXPECT_EQ(p.plan.threads, 1u);
    CheckPlan(p);
  }
}

// Keys and values of 4096 tokens are 25 MB: heads come one after another, on however many threads.
TEST(ThreadPlan, HeadsOfLongSequencesComeOneAfterAnother) {
  for (const size_t threads : {1, 2, 4}) {
    for (const auto& lengths :
         {std::vector<size_t>{4096}, {100, 4096, 7}, std::vector<size_t>(4 * threads, 16384)}) {
      const Planned p(kBertBase, lengths, threads);
      EXPECT_EQ(p.plan.kind, ThreadPlanKind::kRows);
      EXPECT_TRUE(p.plan.attention_apart);
      CheckPlan(p);
    }
  }
}

TEST(ThreadPlan, LittleWorkIsNotShared) {
  const Planned small(kSmall, {5}, 8);
  EXPECT_EQ(small.plan.threads, 1u);
  EXPECT_EQ(small.plan.kind, ThreadPlanKind::kSequences);
  // As it grows, so does the number of threads.
  size_t last = 1;
  for (size_t tokens = 10; tokens < 2000; tokens += 10) {
    const Planned p(kSmall, {tokens}, 8);
    EXPECT_GE(p.plan.threads, last) << tokens << " tokens";
    last = p.plan.threads;
  }
  EXPECT_EQ(last, 8u);
  EXPECT_EQ(Planned(kBertBase, {1}, 4).plan.threads, 4u);
}

// A panel of weights should serve about kRowsOfTask rows at a time.
TEST(ThreadPlan, GroupsHaveTheRowsOfATask) {
  for (const size_t length : {1, 5, 16, 25, 40, 50, 64}) {
    for (const size_t threads : {1, 2, 4}) {
      SCOPED_TRACE(testing::Message() << "length " << length << ", " << threads << " threads");
      const size_t count = 32 * kRowsOfTask / length;
      const Planned p(kBertBase, std::vector<size_t>(count, length), threads);
      ASSERT_EQ(p.plan.kind, ThreadPlanKind::kSequences);
      // Smaller ones at the end even out what threads have, and the very last is what is left.
      const size_t small = threads == 1 ? 0 : p.starts.back() / 4 + kRowsOfTask;
      for (size_t g = 0; g + 1 < p.plan.tasks; ++g) {
        const bool at_end = p.starts[p.plan.task_starts[g + 1]] + small > p.starts.back();
        EXPECT_GE(p.group_rows(g) + length, (at_end && threads > 1 ? kRowsOfTask / 2 : 120))
            << "task " << g << " of " << p.plan.tasks;
        EXPECT_LE(p.group_rows(g), kRowsOfTask + length);
      }
    }
  }
}

TEST(ThreadPlan, ManyEqualSequencesAreTakenWhole) {
  for (const size_t threads : {2, 3, 4, 8, 16}) {
    for (const size_t length : {1, 16, 128, 500}) {
      // As many for every thread; short ones in numbers that let groups be even.
      const size_t count = threads * (length < 128 ? 16 * kRowsOfTask / length : 4);
      const Planned p(kBertBase, std::vector<size_t>(count, length), threads);
      SCOPED_TRACE(testing::Message() << count << " of " << length << " on " << threads);
      EXPECT_EQ(p.plan.kind, ThreadPlanKind::kSequences);
      EXPECT_EQ(p.plan.threads, threads);
      CheckPlan(p);
    }
  }
}

TEST(ThreadPlan, OneLongSequenceIsCutByRows) {
  for (const size_t threads : {2, 3, 4, 8, 16}) {
    for (const size_t length : {512, 1000, 4096, 16384}) {
      SCOPED_TRACE(testing::Message() << length << " rows on " << threads << " threads");
      const Planned p(kBertBase, {length}, threads);
      EXPECT_EQ(p.plan.kind, ThreadPlanKind::kRows);
      EXPECT_EQ(p.plan.threads, threads);
      // Keys and values of 4096 tokens are 25 MB, of 16384 100 MB, which no thread should read
      // again for every 128 rows; those of 1000 stay in L3.
      EXPECT_EQ(p.plan.attention_apart, length >= 4096);
      CheckPlan(p);
    }
  }
}

TEST(ThreadPlan, AttentionIsApartWhereLengthsDiffer) {
  const Planned unequal(kBertBase, {700, 100}, 2);
  EXPECT_EQ(unequal.plan.kind, ThreadPlanKind::kRows);
  EXPECT_TRUE(unequal.plan.attention_apart);
  const Planned equal(kBertBase, {300, 0, 300, 300}, 2);  // an empty one does not count
  EXPECT_EQ(equal.plan.kind, ThreadPlanKind::kRows);
  EXPECT_FALSE(equal.plan.attention_apart);
  // Where the size of the cache is not known, 8 MB stand for it.
  CacheSizes unknown = kCaches;
  unknown.l3 = 0;
  EXPECT_FALSE(Planned(kBertBase, {600}, 2, unknown).plan.attention_apart);
  EXPECT_TRUE(Planned(kBertBase, {700}, 2, unknown).plan.attention_apart);
}

TEST(ThreadPlan, AShortSequenceIsCutByColumns) {
  for (const size_t length : {1, 16, 63}) {
    const Planned p(kBertBase, {length}, 4);
    SCOPED_TRACE(testing::Message() << length << " rows");
    EXPECT_EQ(p.plan.kind, ThreadPlanKind::kColumns);
    EXPECT_EQ(p.plan.threads, 4u);
    CheckPlan(p);
  }
}

TEST(ThreadPlan, HeadsAndTheirColumnsTogether) {
  const auto together = [](size_t heads, size_t kv_heads, size_t threads, size_t panel_cols) {
    const LayerSizes sizes(768, {.num_heads = heads, .num_kv_heads = kv_heads, .d_ff = 3072});
    return HeadsTogether(sizes, threads, panel_cols);
  };
  EXPECT_TRUE(together(12, 12, 4, 48));
  EXPECT_TRUE(together(12, 12, 4, 64));
  EXPECT_TRUE(together(12, 4, 4, 64));
  EXPECT_FALSE(together(12, 12, 5, 48)) << "12 heads on 5 threads";
  EXPECT_FALSE(together(6, 6, 4, 48)) << "6 heads on 4 threads";
  EXPECT_FALSE(together(12, 2, 4, 64)) << "2 key heads on 4 threads";
  EXPECT_FALSE(together(32, 32, 4, 48))
      << "heads of 24 columns, which are no whole vectors everywhere";
  EXPECT_FALSE(together(12, 12, 4, 80)) << "a panel has columns of q and of k";
  EXPECT_FALSE(together(12, 12, 12, 48)) << "a panel has columns of two threads";
  EXPECT_FALSE(together(12, 4, 4, 48)) << "a panel has columns of two threads' keys";
}

// Layers with a window keep few keys at hand, so a long sequence may stay one task's work.
TEST(ThreadPlan, WindowsNeedNoAttentionApart) {
  LayerConfig layer{.num_heads = 12, .window = 64, .d_ff = 3072};
  const Planned local(ModelSizes(EncoderConfig::Uniform(768, 4, layer)), {16384}, 1);
  EXPECT_EQ(local.plan.kind, ThreadPlanKind::kSequences);
  EncoderConfig mixed = EncoderConfig::Uniform(768, 4, layer);
  mixed.layers[3].window.reset();
  const Planned global(ModelSizes(mixed), {16384}, 1);
  EXPECT_EQ(global.plan.kind, ThreadPlanKind::kRows);
}

TEST(ThreadPlan, RaggedLengthsAreEvenedOut) {
  for (const size_t threads : {2, 3, 4, 8}) {
    for (uint32_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(testing::Message() << threads << " threads, seed " << seed);
      std::vector<size_t> lengths = LognormalLengths(64 * threads, seed);
      for (size_t i = seed; i < lengths.size(); i += 9) lengths[i] = 0;
      const Planned p(kBertBase, lengths, threads);
      EXPECT_EQ(p.plan.kind, ThreadPlanKind::kSequences);
      CheckPlan(p);
      // With few sequences a plan by sequences might not be even, and then is not taken.
      CheckPlan(Planned(kBertBase, LognormalLengths(2 * threads + 1, seed), threads));
    }
  }
}

// Small blocks of rows leave less for others to wait for. Base's layer, 28 MB, has larger ones.
TEST(ThreadPlan, ThreadsOfUnequalSpeedHaveSmallBlocks) {
  const ModelSizes mini(TorchStack{.d_model = 384, .num_heads = 12, .d_ff = 1536});
  const auto blocks = [](const ModelSizes& model, const std::vector<size_t>& lengths, bool uneven) {
    const Planned p(model, lengths, 2, kCaches, uneven);
    CheckPlan(p);
    return p.plan.kind == ThreadPlanKind::kRows ? p.plan.row_blocks.parts : 0;
  };
  EXPECT_EQ(blocks(mini, {128}, false), 2u);
  EXPECT_EQ(blocks(mini, {128}, true), 8u);
  EXPECT_EQ(blocks(mini, {96}, true), 6u);
  EXPECT_EQ(blocks(mini, {95}, true), 2u) << "too few to be cut small";
  EXPECT_EQ(blocks(kBertBase, {128}, false), 2u);
  EXPECT_EQ(blocks(kBertBase, {128}, true), 4u);
  const std::vector<size_t> eight(8, 128);
  EXPECT_EQ(blocks(mini, eight, false), 0u) << "by sequences";
  EXPECT_EQ(blocks(mini, eight, true), 64u);
  // Many tasks are small enough; few rows are shared by columns all the same.
  EXPECT_EQ(blocks(mini, std::vector<size_t>(64, 128), true), 0u);
  EXPECT_EQ(Planned(mini, {16}, 2, kCaches, true).plan.kind, ThreadPlanKind::kColumns);
  EXPECT_EQ(Planned(mini, {600}, 1, kCaches, true).plan.kind, ThreadPlanKind::kSequences);
}

TEST(ThreadPlan, Names) {
  EXPECT_EQ(std::string(ThreadPlanKindName(ThreadPlanKind::kSequences)), "sequences");
  EXPECT_EQ(std::string(ThreadPlanKindName(ThreadPlanKind::kRows)), "rows");
  EXPECT_EQ(std::string(ThreadPlanKindName(ThreadPlanKind::kColumns)), "columns");
}

}  // namespace
}  // namespace encore::internal
