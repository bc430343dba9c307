// SPDX-License-Identifier: Apache-2.0
//
// RunParallel: every index once, on every executor, under the default floating-point modes.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "encore/executor.h"
#include "reference/caller_modes.h"
#include "tests/support/executors.h"

namespace encore {
namespace {

TEST(RunParallel, CallsEachIndexOnce) {
  for (const auto& [name, executor] : Executors()) {
    for (const size_t count : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      EXPECT_TRUE(RunParallel(executor, count, [&](size_t i) { ++calls[i]; }).ok());
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(calls[i], 1) << name << ", " << i;
    }
  }
}

TEST(RunParallel, TakesConstCallablesAndFunctions) {
  size_t sum = 0;
  const auto add = [&sum](size_t i) { sum += i; };
  EXPECT_TRUE(RunParallel(Executor::Inline(), 4, add).ok());
  EXPECT_EQ(sum, 6u);
}

TEST(RunParallel, OnAtMostSoManyThreads) {
  for (const auto& [name, executor] : Executors()) {
    for (const int most : {-1, 0, 1, 2, 1000}) {
      const Executor part = executor.WithAtMost(most);
      EXPECT_EQ(part.threads(), std::min(std::max(most, 1), executor.threads())) << name;
      EXPECT_EQ(part.kind(), executor.kind()) << name;
      std::mutex mutex;
      std::set<std::thread::id> ids;
      const auto note = [&](size_t /*i*/) {
        const std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
      };
      EXPECT_TRUE(RunParallel(part, 1000, note).ok()) << name;
      EXPECT_LE(ids.size(), static_cast<size_t>(part.threads())) << name << ", " << most;
    }
  }
}

TEST(RunParallel, ComputesUnderTheDefaultModes) {
  if (!reference::kHaveCallerModes) GTEST_SKIP() << "no floating-point modes to try here";
  const uint64_t before = reference::CallerState();
  for (const auto& [name, executor] : Executors()) {
    reference::SetCallerState(reference::kFlushAndRoundUp);
    std::atomic<int> wrong = 0;
    EXPECT_TRUE(RunParallel(executor, 64, [&](size_t /*i*/) {
                  if ((reference::CallerState() & ~reference::kStickyFlags) !=
                      reference::kDefaultModes)
                    ++wrong;
                }).ok());
    const uint64_t after = reference::CallerState();
    reference::SetCallerState(before);
    EXPECT_EQ(wrong, 0) << name;
    EXPECT_EQ(after & ~reference::kStickyFlags, reference::kFlushAndRoundUp) << name;
  }
}

}  // namespace
}  // namespace encore
