// SPDX-License-Identifier: Apache-2.0
//
// encore serve's scheduler: who shares a slice, who has all threads, that short work passes long
// work and long work ends all the same, and that every piece of work is finished once, with the
// bits that its texts have alone.

#include "tools/serve/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "encore/thread_pool.h"
#include "tests/support/watchdog.h"

namespace encore::serve {
namespace {

constexpr int kThreads = 2;
constexpr size_t kSlice = 64;    // tokens
constexpr size_t kText = 16;     // tokens that each text is said to have
constexpr size_t kQueue = 1000;  // texts
const std::vector<std::string> kTexts = {"the cat sat on the mat", "a dog", "over the hills", ""};

using WorkPtr = std::shared_ptr<Work>;

class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest()
      : pool_(*ThreadPool::Create({.threads = kThreads})),
        model_{.name = "base",
               .encoder = *TextEncoder::Open(ENCORE_TEST_DATA_DIR "/text/base"),
               .token_ns = 1,
               .slice_tokens = kSlice},
        scheduler_(std::in_place, pool_.executor(), kQueue * kText, &metrics_) {}

  // Work of so many texts, kTexts again and again from `first` on.
  WorkPtr Make(size_t texts, size_t first = 0) {
    auto work = std::make_shared<Work>();
    work->model = &model_;
    for (size_t i = 0; i < texts; ++i) work->texts.push_back(kTexts[(first + i) % kTexts.size()]);
    work->tokens.assign(texts, kText);
    work->all_tokens = texts * kText;
    return work;
  }

  // Submits it; ready once it is finished.
  std::future<void> Start(const WorkPtr& work) {
    auto done = std::make_shared<std::promise<void>>();
    work->finished = [done] { done->set_value(); };
    EXPECT_TRUE(scheduler_->Submit(work));
    return done->get_future();
  }

  void RunAlone(size_t texts) { Start(Make(texts)).wait(); }

  // Holds a thread of short work, in the call that says that its work is finished.
  class Hold {
   public:
    explicit Hold(SchedulerTest* test) {
      const WorkPtr work = test->Make(1);
      work->finished = [this] {
        held_.set_value();
        release_.get_future().wait();
        released_.set_value();
      };
      EXPECT_TRUE(test->scheduler_->Submit(work));
      held_.get_future().wait();
    }
    // Until its thread is free.
    void Release() {
      if (!is_released_) release_.set_value();
      is_released_ = true;
      released_.get_future().wait();
    }

   private:
    std::promise<void> held_, release_, released_;
    bool is_released_ = false;
  };

  // A line's value in what /metrics says.
  double Metric(const std::string& name) const {
    const std::string text = metrics_.Text({});
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size() + 2));
  }
  double BatchesOn(int threads) const {
    return Metric("encore_batches_total{threads=\"" + std::to_string(threads) + "\"}");
  }
  // Slices that at most so many pieces of work shared.
  double Shared(int works) const {
    return Metric("encore_batch_requests_bucket{le=\"" + std::to_string(works) + "\"}");
  }

  Watchdog watchdog_{testing::UnitTest::GetInstance()->current_test_info()->name(),
                     std::chrono::seconds(300)};
  ThreadPool pool_;
  Model model_;
  Metrics metrics_;
  std::optional<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, EachThreadTakesItsShareOfWhatWaits) {
  Hold one(this);
  Hold other(this);
  const double before = Metric("encore_batch_tokens_count");
  for (int i = 0; i < 2; ++i) {  // which is of no account
    const WorkPtr gone = Make(4);
    const std::future<void> cancelled = Start(gone);
    scheduler_->Cancel(gone);
  }
  std::vector<std::future<void>> done;
  for (size_t i = 0; i < 8; ++i) done.push_back(Start(Make(1)));
  // This thread takes half of what waits, as often as it comes: 4, 2, 1 and 1.
  one.Release();
  for (std::future<void>& future : done) future.wait();
  EXPECT_EQ(Metric("encore_batch_tokens_count") - before, 4);
  EXPECT_EQ(Shared(1) - before, 2);
  EXPECT_EQ(Shared(2) - before, 3);
  EXPECT_EQ(Shared(4) - before, 4);
  other.Release();
}

TEST_F(SchedulerTest, ASliceIsNeverLargerThanTheModels) {
  Hold one(this);
  Hold other(this);
  std::vector<std::future<void>> done;
  for (size_t i = 0; i < 100; ++i) done.push_back(Start(Make(1 + i % 4, i)));
  one.Release();
  other.Release();
  for (std::future<void>& future : done) future.wait();
  EXPECT_EQ(Metric("encore_batch_tokens_count"),
            Metric("encore_batch_tokens_bucket{le=\"" + std::to_string(kSlice) + "\"}"));
}

TEST_F(SchedulerTest, WorkOfOtherOptionsIsASliceOfItsOwn) {
  Hold one(this);
  Hold other(this);
  std::vector<std::future<void>> done;
  for (size_t i = 0; i < 8; ++i) {
    const WorkPtr work = Make(1);
    work->options.normalize = i % 2 == 0;
    work->kind = i < 4 ? WorkKind::kEmbed : WorkKind::kTokens;  // which are never merged
    done.push_back(Start(work));
  }
  const double before = Metric("encore_batch_tokens_count");
  one.Release();
  for (std::future<void>& future : done) future.wait();
  // Of 4 embeddings two and two, 4 of the others.
  EXPECT_EQ(Metric("encore_batch_tokens_count") - before, 6);
  other.Release();
}

TEST_F(SchedulerTest, ALoneQueryHasAllThreadsUntilOthersMeetIt) {
  for (int i = 0; i < 10; ++i) RunAlone(1);
  EXPECT_EQ(BatchesOn(kThreads), 10);
  EXPECT_EQ(BatchesOn(1), 0);
  {
    Hold one(this);
    Hold other(this);
    std::vector<std::future<void>> done;
    for (size_t i = 0; i < 16; ++i) done.push_back(Start(Make(1)));
    one.Release();
    other.Release();
    for (std::future<void>& future : done) future.wait();
  }
  const double all = BatchesOn(kThreads);
  EXPECT_GT(BatchesOn(1), 1);
  RunAlone(1);  // others were there a moment ago
  EXPECT_EQ(BatchesOn(kThreads), all);
  for (int i = 0; i < 40; ++i) RunAlone(1);
  EXPECT_GT(BatchesOn(kThreads), all);
  EXPECT_LT(BatchesOn(kThreads), all + 40);
}

TEST_F(SchedulerTest, ShortWorkPassesLongWork) {
  model_.token_ns = 1e9;  // so that no slice of the long work is late
  scheduler_.emplace(pool_.executor(), size_t{1} << 40, &metrics_);
  const WorkPtr work = Make(20'000);
  std::future<void> done = Start(work);
  for (int i = 0; i < 20; ++i) RunAlone(1);
  EXPECT_NE(done.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  scheduler_->Cancel(work);
  done.wait();
  EXPECT_EQ(work->status.code(), ErrorCode::kCancelled);
  EXPECT_EQ(scheduler_->queued_tokens(), 0u);
}

TEST_F(SchedulerTest, LongWorkEndsBesideShortWorkWithoutEnd) {
  std::atomic<bool> is_over = false;
  std::atomic<int> ended = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < kThreads + 1; ++i) {
    clients.emplace_back([&] {
      while (!is_over) RunAlone(4);
      ++ended;
    });
  }
  const WorkPtr work = Make(400);
  Start(work).wait();
  is_over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(work->status.ok()) << work->status.message();
  EXPECT_EQ(work->values.size(), 400 * work->width);
  EXPECT_EQ(ended, kThreads + 1);
}

TEST_F(SchedulerTest, WhatTheQueueHasNoRoomForIsRefused) {
  Hold one(this);
  Hold other(this);
  std::vector<std::future<void>> done;
  for (size_t i = 0; i < kQueue / 4; ++i) done.push_back(Start(Make(4)));
  const WorkPtr refused = Make(1);
  bool is_finished = false;
  refused->finished = [&] { is_finished = true; };
  EXPECT_FALSE(scheduler_->Submit(refused));
  scheduler_->Cancel(refused);
  EXPECT_FALSE(is_finished);
  one.Release();
  other.Release();
  for (std::future<void>& future : done) future.wait();
  EXPECT_EQ(scheduler_->queued_tokens(), 0u);
  RunAlone(1);
}

TEST_F(SchedulerTest, WaitingWorkEndsByItsDeadlineOrWithItsClient) {
  Hold one(this);
  Hold other(this);
  const WorkPtr late = Make(1);
  late->deadline = Clock::now();
  const std::future<void> expired = Start(late);
  const WorkPtr gone = Make(2);
  const std::future<void> cancelled = Start(gone);
  scheduler_->Cancel(gone);
  EXPECT_EQ(cancelled.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(gone->status.code(), ErrorCode::kCancelled);
  one.Release();
  expired.wait();
  EXPECT_EQ(late->status.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(late->values.empty() && gone->values.empty());
  EXPECT_EQ(scheduler_->queued_tokens(), 0u);
  EXPECT_EQ(scheduler_->SecondsOfQueue(), 0);
  other.Release();
}

// Clients that come, go and wait as they like.
TEST_F(SchedulerTest, EveryWorkIsFinishedOnceWithTheBitsOfItsTexts) {
  std::vector<std::vector<float>> expected;
  for (const std::string& text : kTexts) {
    const Result<Embeddings> made = model_.encoder.Encode({text});
    ASSERT_TRUE(made.ok()) << made.status().message();
    const ConstView view = made->vectors.View<float>();
    expected.emplace_back(view.data(), view.data() + view.dim(1));
  }
  std::atomic<int> computed = 0;
  std::atomic<int> cancelled = 0;
  const auto client = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 100; ++i) {
      const size_t texts = random() % 8 == 0 ? 20 : 1 + random() % 4;
      const size_t first = random() % kTexts.size();
      const WorkPtr work = Make(texts, first);
      std::atomic<int> finished = 0;
      std::promise<void> done;
      work->finished = [&] {
        if (++finished == 1) done.set_value();
      };
      if (!scheduler_->Submit(work)) continue;
      if (random() % 4 == 0) {
        if (random() % 2 == 0) std::this_thread::yield();
        scheduler_->Cancel(work);
      }
      done.get_future().wait();
      EXPECT_EQ(finished, 1);
      if (!work->status.ok()) {
        EXPECT_EQ(work->status.code(), ErrorCode::kCancelled) << work->status.message();
        ++cancelled;
        continue;
      }
      ++computed;
      std::vector<float> wanted;
      for (size_t t = 0; t < texts; ++t) {
        const std::vector<float>& row = expected[(first + t) % kTexts.size()];
        wanted.insert(wanted.end(), row.begin(), row.end());
      }
      EXPECT_EQ(work->values, wanted);
    }
  };
  std::vector<std::thread> clients;
  for (unsigned seed = 0; seed < 6; ++seed) clients.emplace_back(client, seed);
  for (std::thread& thread : clients) thread.join();
  EXPECT_GT(computed, 300);
  EXPECT_GT(cancelled, 0);
  EXPECT_EQ(scheduler_->queued_tokens(), 0u);
}

}  // namespace
}  // namespace encore::serve
