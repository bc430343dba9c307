// SPDX-License-Identifier: Apache-2.0
//
// The workspace: exactly as many bytes as WorkspaceBytes says suffice, it grows linearly with
// tokens, and a sequence of tens of thousands fits. A workspace too small is in
// encoder_bad_input_test.cc.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "engine/nn/scratch_plan.h"
#include "engine/nn/thread_plan.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "reference/switched.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

#if ENCORE_TEST_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace encore {
namespace {

// Memory of so many bytes that starts as NaN, between zones that nobody must write or, under
// AddressSanitizer, touch.
class ExactMemory {
 public:
  explicit ExactMemory(size_t bytes)
      : bytes_(bytes),
        all_(static_cast<uint8_t*>(::operator new (bytes + 2 * kZone, std::align_val_t{64}))) {
    std::memset(all_, 0xFF, bytes + 2 * kZone);  // NaN as float, absurd as size_t
#if ENCORE_TEST_ASAN
    __asan_poison_memory_region(all_, kZone);
    __asan_poison_memory_region(data() + bytes, kZone);
#endif
  }
  ExactMemory(const ExactMemory&) = delete;
  ExactMemory& operator=(const ExactMemory&) = delete;
  ~ExactMemory() {
    Unpoison();
    ::operator delete (all_, std::align_val_t{64});
  }
  uint8_t* data() { return all_ + kZone; }
  bool Intact() {
    Unpoison();
    const auto untouched = [](uint8_t byte) { return byte == 0xFF; };
    return std::all_of(all_, data(), untouched) &&
           std::all_of(data() + bytes_, data() + bytes_ + kZone, untouched);
  }

 private:
  static constexpr size_t kZone = 4096;
  void Unpoison() {
#if ENCORE_TEST_ASAN
    __asan_unpoison_memory_region(all_, bytes_ + 2 * kZone);
#endif
  }
  size_t bytes_;
  uint8_t* all_;
};

TEST(EncoderWorkspace, ExactlyThatManyBytesSuffice) {
  const Executors executors;
  const std::vector<float> add = RandomFloats(600 * 600, 2);
  const EncoderConfig configs[] = {
      TorchStack{.d_model = 14, .num_heads = 1, .d_ff = 100},
      TorchStack{.d_model = 64, .num_heads = 8, .d_ff = 30, .norm_first = true},
      TorchStack{.d_model = 24, .num_heads = 2, .d_ff = 7, .num_layers = 2, .final_norm = true},
      RotaryAndGate(),
      BucketsAndBothNorms(),
      RelativeAndWindow(),
      LayerInputs(),
      Convolutions(),
      ExpertsLast()};
  for (const EncoderConfig& config : configs) {
    const EncoderModel model(config);
    ForEachTarget([&](const std::string& target) {
      for (const Precision precision : kPrecisions) {
        if (kSlow && precision != Precision::kF32 && target != SupportedTargets()[0]) continue;
        SCOPED_TRACE(PrecisionName(precision));
        const Encoder encoder = model.Make({.precision = precision});
        for (const std::vector<size_t>& lengths :
             std::vector<std::vector<size_t>>{{1},
                                              {1, 1, 1, 1, 1, 1, 1},
                                              {15, 17, 0, 33},
                                              {65, 1, 64},
                                              {600},
                                              {129, 383, 0, 0}}) {
          const std::vector<size_t> starts = Starts(lengths);
          const size_t tokens = starts.back();
          const std::vector<float> x = RandomFloats(tokens * config.d_model, 1);
          for (const bool masked : {false, true}) {
            Batch batch{.seq_starts = starts};
            if (masked) batch.mask.additive = {add.data(), {600, 600}};
            const std::vector<float> want = Forward(encoder, batch, x);
            for (const auto& [name, executor] : executors) {
              if (target != SupportedTargets().front() && name != "host pool 3") continue;
              if (precision != Precision::kF32 && name != "host pool 3" && name != "inline")
                continue;
              const size_t bytes = *encoder.WorkspaceBytes(batch, executor);
              EXPECT_LE(bytes,
                        *encoder.WorkspaceBytes({tokens, lengths.size()}, executor.threads()));
              ExactMemory memory(bytes);
              const Workspace workspace = Taken(Workspace::Wrap(memory.data(), bytes));
              Guarded y({tokens, config.d_model});
              const Status status = encoder.Forward(batch, {x.data(), {tokens, config.d_model}},
                                                    y.view(), workspace, executor);
              ASSERT_TRUE(status.ok()) << status.message();
              EXPECT_TRUE(memory.Intact()) << name << " wrote beyond the workspace";
              EXPECT_TRUE(y.Intact());
              EXPECT_TRUE(SameBits({y.view().data(), want.size()}, want))
                  << name << ": what the workspace held before the call shows";
            }
          }
        }
      }
    });
  }
}

TEST(EncoderWorkspace, GrowsWithEverythingAndLinearlyWithTokens) {
  const Encoder encoder = EncoderModel({.d_model = 64, .num_heads = 4, .d_ff = 256}).Make();
  const auto bytes = [&](size_t tokens, size_t sequences, int threads) {
    return *encoder.WorkspaceBytes({tokens, sequences}, threads);
  };
  for (const int threads : {1, 2, 7}) {
    size_t before = 0;
    for (size_t tokens = 0; tokens < 1200; ++tokens) {
      const size_t now = bytes(tokens, 3, threads);
      ASSERT_GE(now, before) << tokens << " tokens";
      ASSERT_GE(bytes(tokens, 4, threads), now);
      ASSERT_GE(bytes(tokens, 3, threads + 1), now);
      before = now;
    }
  }
  // Beyond a tile of keys and the threads' blocks of rows, each token costs the same.
  const size_t each = (bytes(2000 + 1600, 1, 2) - bytes(2000, 1, 2)) / 1600;
  for (const size_t tokens : {10000, 32768, 1 << 20}) {
    EXPECT_EQ(bytes(tokens + 1600, 1, 2) - bytes(tokens, 1, 2), each * 1600) << tokens;
  }
  // q, k, v, their packed copies, the context: 7 rows of 64 floats a token, and little else. Scores
  // of 32768 tokens would be 4 GiB a head.
  EXPECT_LE(each, 7 * 64 * sizeof(float) + 256);
  EXPECT_LE(bytes(32768, 1, 2), size_t{64} << 20);
}

// Most of 64 threads have nothing to do with 128 tokens but columns of the products, for which they
// need no room. What remains beside one thread's is a quarter more rows, and scores for all heads.
TEST(EncoderWorkspace, ThreadsWithoutWorkTakeNoRoom) {
  const internal::ModelSizes base(TorchStack{.d_model = 768, .num_heads = 12, .d_ff = 3072});
  const auto bytes = [&](size_t tokens, size_t sequences, size_t threads) {
    const Result<internal::ScratchPlan> plan =
        internal::ScratchPlan::Create(base, tokens, sequences, tokens / sequences, threads);
    return plan.ok() ? plan->bytes : 0;
  };
  std::printf("1x128: 1 thread %zu bytes, 4 %zu, 64 %zu; 64x128: 64 %zu\n", bytes(128, 1, 1),
              bytes(128, 1, 4), bytes(128, 1, 64), bytes(64 * 128, 64, 64));
  EXPECT_LE(bytes(128, 1, 64), 2 * bytes(128, 1, 1));
  EXPECT_LE(bytes(128, 1, 1024), bytes(128, 1, 64) + 8 * 1024);  // a word for each in the plan
  EXPECT_LE(2 * bytes(16 * 128, 16, 64), 3 * bytes(16 * 128, 16, 16));
}

// On more threads than tasks, with as much memory as that takes: by columns, by rows and by whole
// sequences.
TEST(EncoderWorkspace, ExactlyThatManyBytesSufficeForManyThreads) {
  const TorchStack stack{.d_model = 64, .num_heads = 4, .d_ff = 256, .num_layers = 2};
  const EncoderModel model(stack);
  BackwardLoop loop;
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 16}));
  for (const Precision precision : kPrecisions) {
    const Encoder encoder = model.Make({.precision = precision});
    for (const std::vector<size_t>& lengths :
         std::vector<std::vector<size_t>>{{20},
                                          {128},
                                          {3, 1, 60, 2},
                                          {700},
                                          std::vector<size_t>(16, 40),
                                          std::vector<size_t>(64, 10),
                                          std::vector<size_t>(600, 1),
                                          {300, 2, 150, 7, 90}}) {
      const std::vector<size_t> starts = Starts(lengths);
      const size_t tokens = starts.back();
      std::vector<float> x = RandomFloats(tokens * 64, 1);
      const std::vector<float> want = Forward(encoder, Batch{starts}, x);
      for (const Executor& executor :
           {Executor::HostPool(64, loop), Executor::OpenMP(16), pool.executor()}) {
        const size_t bytes = *encoder.WorkspaceBytes(Batch{starts}, executor);
        ExactMemory memory(bytes);
        const Workspace workspace = Taken(Workspace::Wrap(memory.data(), bytes));
        Guarded y({tokens, 64});
        ASSERT_TRUE(
            encoder.Forward(Batch{starts}, {x.data(), {tokens, 64}}, y.view(), workspace, executor)
                .ok());
        EXPECT_TRUE(SameBits({y.view().data(), want.size()}, want));
        // The last rows alone, which overwrites its input.
        std::vector<float> copy = x;
        Guarded last({lengths.size(), 64});
        ASSERT_TRUE(encoder
                        .ForwardRows(Batch{starts}, OutputRows::kLast, {copy.data(), {tokens, 64}},
                                     last.view(), workspace, executor)
                        .ok());
        for (size_t b = 0; b < lengths.size(); ++b) {
          EXPECT_TRUE(SameBits({last.view().data() + b * 64, 64},
                               {want.data() + (starts[b + 1] - 1) * 64, 64}))
              << "sequence " << b;
        }
        EXPECT_TRUE(memory.Intact()) << "wrote beyond the workspace";
        EXPECT_TRUE(y.Intact() && last.Intact());
      }
    }
  }
}

TEST(EncoderWorkspace, MadeForABatchOrForLimits) {
  const Encoder encoder = EncoderModel(RotaryAndGate()).Make();
  const Batch batch{{0, 3, 8}};
  EXPECT_EQ(batch.seq_starts.size(), 3u);
  EXPECT_EQ(batch.seq_starts.back(), 8u);
  const Executor executor = Executor::OpenMP(2);
  const Workspace of_batch = Taken(encoder.MakeWorkspace(batch, executor));
  EXPECT_EQ(of_batch.size_bytes(), *encoder.WorkspaceBytes(batch, executor));
  const BatchLimits limits{.tokens = 100, .sequences = 5};
  const Workspace of_limits = Taken(encoder.MakeWorkspace(limits, executor));
  EXPECT_EQ(of_limits.size_bytes(), *encoder.WorkspaceBytes(limits, executor.threads()));
  // Any batch within the limits, on as many threads or fewer.
  const std::vector<float> x = RandomFloats(100 * 32, 1);
  std::vector<float> y(x.size());
  for (const Batch& within :
       {batch, Batch{{0, 100}}, Batch{{0, 20, 40, 60, 80, 100}}, Batch{{0}}}) {
    const size_t tokens = within.seq_starts.back();
    for (const Executor& by : {Executor::Inline(), executor}) {
      ASSERT_TRUE(
          encoder.Forward(within, {x.data(), {tokens, 32}}, {y.data(), {tokens, 32}}, of_limits, by)
              .ok());
    }
  }
  EXPECT_FALSE(encoder.MakeWorkspace(BatchLimits{.tokens = SIZE_MAX}).ok());
}

// A host's pool in which a task makes a call of its own.
struct NestingPool {
  const Encoder* encoder;
  const Workspace* workspace;
  std::vector<Status> statuses;

  template <typename F>
  void parallel_for(size_t count, const F& body) {
    const std::vector<float> x = RandomFloats(5 * 32, 1);
    std::vector<float> y(x.size());
    statuses.push_back(encoder->Forward(Batch{{0, 5}}, {x.data(), {5, 32}}, {y.data(), {5, 32}},
                                        *workspace, Executor::Inline()));
    for (size_t i = 0; i < count; ++i) body(i);
  }
};

TEST(EncoderWorkspace, TwoCallsAtOnceAreRefused) {
  const Encoder encoder = EncoderModel(RotaryAndGate()).Make();
  const Batch batch{{0, 400, 1000}};  // enough for two threads
  const std::vector<float> x = RandomFloats(1000 * 32, 1);
  const std::vector<float> want = Forward(encoder, batch, x);
  std::vector<float> y(x.size());
  const Workspace own = *Workspace::Create(*encoder.WorkspaceBytes({1000, 2}, 2));
  const Workspace other = *encoder.MakeWorkspace(Batch{{0, 5}}, Executor::Inline());
  for (const Workspace* inner : {&own, &other}) {
    NestingPool pool{&encoder, inner, {}};
    const Status outer = encoder.Forward(batch, {x.data(), {1000, 32}}, {y.data(), {1000, 32}}, own,
                                         Executor::HostPool(2, pool));
    ASSERT_TRUE(outer.ok()) << outer.message();
    EXPECT_TRUE(SameBits(y, want));
    ASSERT_FALSE(pool.statuses.empty());
    for (const Status& status : pool.statuses) {
      if (inner == &other) {
        EXPECT_TRUE(status.ok()) << status.message();
        continue;
      }
      EXPECT_TRUE(FailsWith(status, {"in use by another call"}));
    }
  }
}

// A list of starts is a copy, and a view of numbers a view.
TEST(EncoderWorkspace, BatchesKeepTheListsThatTheyAreMadeOf) {
  Batch batch;
  {
    const Batch made{{0, 3, 8}};
    batch = made;
  }
  EXPECT_EQ(batch.seq_starts[1], 3u);
  std::vector<size_t> numbers = {0, 3, 8};
  const Batch view{numbers};
  numbers[1] = 4;
  EXPECT_EQ(view.seq_starts[1], 4u);
  EXPECT_TRUE(Batch{}.seq_starts.empty());
}

TEST(EncoderWorkspace, ASequenceOfTwentyThousand) {
  const size_t tokens = kSlow ? 3000 : 20000;
  const EncoderModel model({.d_model = 8, .num_heads = 1, .d_ff = 16});
  const std::vector<size_t> starts = Starts({tokens});
  const Encoder encoder = model.Make();
  EXPECT_LE(*encoder.WorkspaceBytes({.tokens = tokens}, 1), size_t{20} << 20);
  const std::vector<float> x = RandomFloats(tokens * 8, 1);
  const std::vector<float> y = Forward(encoder, Batch{starts}, x);
  for (const float v : y) ASSERT_TRUE(std::isfinite(v));
  // Under a causal mask the first tokens do not see the rest.
  Batch causal{.seq_starts = starts};
  causal.mask.causal = true;
  const std::vector<float> all = Forward(encoder, causal, x);
  const std::vector<size_t> few = Starts({100});
  Batch beginning{.seq_starts = few};
  beginning.mask.causal = true;
  const std::vector<float> alone = Forward(encoder, beginning, {x.begin(), x.begin() + 800});
  EXPECT_TRUE(SameBits({all.data(), 800}, alone));
}

}  // namespace
}  // namespace encore
