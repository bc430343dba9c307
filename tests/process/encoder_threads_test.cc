// SPDX-License-Identifier: Apache-2.0
//
// One encoder, called from many threads at once with a workspace each. ThreadSanitizer has its say
// about this test in the builds that have it.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "reference/switched.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/guarded.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

constexpr size_t kThreads = 8;

void ExpectEightCallers(const EncoderConfig& config, Precision precision = Precision::kF32) {
  const EncoderModel model(config);
  const Encoder encoder = model.Make({.precision = precision});
  // Each caller has a batch of its own, and one that all of them share.
  std::vector<std::vector<size_t>> starts;
  std::vector<std::vector<float>> x, want, got(kThreads), got_shared(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    starts.push_back(Starts({10 + 7 * i, 1, 70}));
    x.push_back(RandomFloats(starts[i].back() * config.d_model, static_cast<uint32_t>(i)));
    want.push_back(Forward(encoder, Batch{starts[i]}, x[i]));
  }
  HostPool pool(2);  // which all callers share: it takes one loop after another
  // And another, which does one's work while those of the others are done by themselves.
  const Result<ThreadPool> thread_pool = ThreadPool::Create({.threads = 3});
  ASSERT_TRUE(thread_pool.ok());
  const Executor executors[] = {Executor::Inline(), Executor::OpenMP(2),
                                Executor::HostPool(2, pool), thread_pool->executor()};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const Encoder copy = encoder;
      for (size_t round = 0; round < 6; ++round) {
        const Executor& executor = executors[(i + round) % 4];
        got[i] = Forward(round % 2 == 0 ? encoder : copy, Batch{starts[i]}, x[i], executor);
        if (!SameBits(got[i], want[i])) return;
        got_shared[i] = Forward(encoder, Batch{starts[0]}, x[0], executor);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT_TRUE(SameBits(got[i], want[i])) << "caller " << i;
    EXPECT_TRUE(SameBits(got_shared[i], want[0])) << "caller " << i;
  }
}

TEST(EncoderThreads, EightCallersOfOneEncoder) {
  ExpectEightCallers(TorchStack{.d_model = 48,
                                .num_heads = 3,
                                .d_ff = 100,
                                .num_layers = 2,
                                .activation = Activation::kGelu});
  // Threads fill tables of positions together, and use them.
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(PrecisionName(precision));
    ExpectEightCallers(RotaryAndGate(), precision);
    ExpectEightCallers(BucketsAndBothNorms(), precision);
    ExpectEightCallers(RelativeAndWindow(), precision);
    ExpectEightCallers(ExpertsInTurn(), precision);
  }
}

// Creation, too, may happen anywhere.
TEST(EncoderThreads, EncodersMadeAtOnce) {
  const EncoderModel model({.d_model = 48, .num_heads = 3, .d_ff = 100});
  const std::vector<size_t> starts = Starts({20});
  const std::vector<float> x = RandomFloats(20 * 48, 1);
  const std::vector<float> want = Forward(model.Make(), Batch{starts}, x);
  std::vector<std::vector<float>> got(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { got[i] = Forward(model.Make(), Batch{starts}, x); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& y : got) EXPECT_TRUE(SameBits(y, want));
}

// Host threads that share two encoders and a pool, and meanwhile make and end pools of their own,
// each with one workspace for all its calls.
TEST(EncoderThreads, PoolsThatComeAndGo) {
  const EncoderModel plain({.d_model = 32, .num_heads = 2, .d_ff = 128, .num_layers = 2});
  const EncoderModel switched(RotaryAndGate());  // d_model 32 too
  const Encoder encoders[] = {plain.Make(), switched.Make({.precision = Precision::kInt8})};
  const std::vector<size_t> starts = Starts({70, 1, 90, 30});
  const size_t tokens = starts.back();
  const Batch batch{starts};
  const std::vector<float> x = RandomFloats(tokens * 32, 1);
  const std::vector<float> want[] = {Forward(encoders[0], batch, x),
                                     Forward(encoders[1], batch, x)};
  const Result<ThreadPool> shared = ThreadPool::Create({.threads = 3});
  ASSERT_TRUE(shared.ok());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      Workspace workspace;
      std::vector<float> y(x.size());
      for (size_t round = 0; round < (kSlow ? 5 : 12); ++round) {
        const size_t which = (i + round) % 2;
        const Encoder encoder = encoders[which];
        Result<ThreadPool> made =
            ThreadPool::Create({.threads = 1 + static_cast<int>(round % 4),
                                .idle_spin = std::chrono::microseconds(round % 3 == 0 ? 100 : 0)});
        if (!made.ok()) {
          ++wrong;
          return;
        }
        const Executor executor = made->executor();
        const ThreadPool own = *std::move(made);  // the executor stays that of the moved pool
        const Executor by[] = {executor, shared->executor(), Executor::Inline()};
        for (const Executor& e : by) {
          const Result<size_t> bytes = encoder.WorkspaceBytes(batch, e);
          if (!bytes.ok() || !workspace.Reserve(*bytes).ok() ||
              !encoder
                   .Forward(batch, {x.data(), {tokens, 32}}, {y.data(), {tokens, 32}}, workspace, e)
                   .ok() ||
              !SameBits(y, want[which])) {
            ++wrong;
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace encore
