// SPDX-License-Identifier: Apache-2.0
//
// One encoder, called from many threads at once with a workspace each. ThreadSanitizer has its say
// about this test in the builds that have it.

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "tests/compare.h"
#include "tests/executors.h"
#include "tests/guarded.h"
#include "tests/precisions.h"
#include "tests/reference/encoder_model.h"
#include "tests/reference/switched.h"

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

}  // namespace
}  // namespace encore
