// SPDX-License-Identifier: Apache-2.0
//
// Executor::WithStop and WithDeadline: calls end early on every executor, nothing runs after them,
// and the next call computes as ever.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/max_sim.h"
#include "encore/ops.h"
#include "engine/platform/thread_team.h"
#include "reference/encoder_model.h"
#include "tests/support/executors.h"
#include "tests/support/results.h"

namespace encore {
namespace {

using Clock = std::chrono::steady_clock;
using internal::RunTeam;
using internal::Team;

TEST(CallStopTest, NoTaskBeginsOnceTheFlagIsSet) {
  for (const auto& [name, executor] : Executors()) {
    SCOPED_TRACE(name);
    for (const size_t count : {size_t{1}, size_t{7}, size_t{500}}) {
      std::atomic<bool> stop = true;
      std::atomic<int> ran = 0;
      EXPECT_EQ(RunParallel(executor.WithStop(&stop), count, [&](size_t) { ran++; }).code(),
                ErrorCode::kCancelled);
      EXPECT_EQ(ran, 0);
      stop = false;
      EXPECT_TRUE(RunParallel(executor.WithStop(&stop), count, [&](size_t) { ran++; }).ok());
      EXPECT_EQ(ran, static_cast<int>(count));
    }
  }
}

// A flag that is set by a task and taken back by the next stage leaves out all that follows.
TEST(CallStopTest, AStoppedCallStaysStopped) {
  for (const auto& [name, executor] : Executors()) {
    SCOPED_TRACE(name);
    std::atomic<bool> stop = false;
    std::atomic<int> first = 0;
    std::atomic<int> second = 0;
    const Status status = RunTeam(executor.WithStop(&stop), [&](Team& team) {
      team.ForEachInOrder(1000, [&](size_t i, int) {
        first++;
        if (i == 3) stop = true;
      });
      EXPECT_TRUE(team.IsStopped());
      stop = false;
      team.ForEach(10, [&](size_t, int) { second++; });
    });
    EXPECT_EQ(status.code(), ErrorCode::kCancelled);
    EXPECT_LE(first, 4 + executor.threads()) << "at most one task a thread was under way";
    EXPECT_EQ(second, 0);
  }
}

TEST(CallStopTest, ADeadlineEndsACall) {
  for (const auto& [name, executor] : Executors()) {
    SCOPED_TRACE(name);
    std::atomic<int> ran = 0;
    const auto run = [&, executor = executor](Clock::time_point deadline, size_t count) {
      ran = 0;
      return RunParallel(executor.WithDeadline(deadline), count,
                         [&](size_t) {
                           ran++;
                           std::this_thread::sleep_for(std::chrono::microseconds(200));
                         })
          .code();
    };
    EXPECT_EQ(run(Clock::now(), 5), ErrorCode::kDeadlineExceeded);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(run(Clock::now() + std::chrono::hours(1), 20), ErrorCode::kOk);
    EXPECT_EQ(ran, 20);
    const auto start = Clock::now();
    EXPECT_EQ(run(start + std::chrono::milliseconds(3), 100000), ErrorCode::kDeadlineExceeded);
    EXPECT_GT(ran, 0);
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(2)) << "20 s of tasks were left out";
  }
}

TEST(CallStopTest, OperationsReturnTheStop) {
  const std::vector<float> a(64 * 64, 1.0f);
  std::vector<float> c(64 * 64);
  std::atomic<bool> stop = true;
  const Executor executor = Executor::Inline().WithStop(&stop);
  const ConstView view(a.data(), {64, 64});
  const MutableView out(c.data(), {64, 64});
  EXPECT_EQ(MatMul(view, view, out, {.executor = executor}).code(), ErrorCode::kCancelled);
  EXPECT_EQ(Attention(view, view, view, out, {.executor = executor}).code(), ErrorCode::kCancelled);
  EXPECT_EQ(StoreVectors(view, DType::kI8, executor).status().code(), ErrorCode::kCancelled);
}

// Stopped at many moments of a pass; the next pass has the same bits as ever.
TEST(CallStopTest, AnEncoderIsStoppedAtAnyMomentAndGoesOn) {
  constexpr size_t kTokens = 300;
  const EncoderModel model(EncoderConfig::Uniform(64, 3, {.num_heads = 4, .d_ff = 128}));
  const Encoder encoder = model.Make();
  const Batch batch{.seq_starts = {0, 40, 250, kTokens}};
  const std::vector<float> x(kTokens * 64, 0.5f);
  const std::vector<float> want = Forward(encoder, batch, x);
  std::vector<float> y(x.size());
  for (const auto& [name, executor] : Executors()) {
    SCOPED_TRACE(name);
    Workspace workspace = Taken(encoder.MakeWorkspace(batch, executor));
    const auto forward = [&](const Executor& with) {
      return encoder.Forward(batch, ConstView(x.data(), {kTokens, size_t{64}}),
                             MutableView(y.data(), {kTokens, size_t{64}}), workspace, with);
    };
    int stopped = 0;
    for (int microseconds = 0; microseconds < 1000; microseconds += 100) {
      const Status status =
          forward(executor.WithDeadline(Clock::now() + std::chrono::microseconds(microseconds)));
      if (!status.ok()) {
        EXPECT_EQ(status.code(), ErrorCode::kDeadlineExceeded) << status;
        stopped++;
      }
      std::atomic<bool> stop = false;
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
        stop = true;
      });
      const Status cancelled = forward(executor.WithStop(&stop));
      other.join();
      EXPECT_TRUE(cancelled.ok() || cancelled.code() == ErrorCode::kCancelled) << cancelled;
      ASSERT_TRUE(forward(executor).ok());
      ASSERT_EQ(y, want);
    }
    EXPECT_GT(stopped, 0) << "the first deadline had passed before the call";
  }
}

TEST(CallStopTest, MakingAnEncoderIsNotStopped) {
  const EncoderModel model(EncoderConfig::Uniform(64, 1, {.num_heads = 4, .d_ff = 128}));
  std::atomic<bool> stop = true;
  EXPECT_TRUE(Encoder::Create(model.config(), model.weights(),
                              {.executor = Executor::Inline().WithStop(&stop)})
                  .ok());
}

}  // namespace
}  // namespace encore
