// SPDX-License-Identifier: Apache-2.0
//
// Once: made by one thread for all, again after a failure, and anew in a child of fork() whose
// parent had a thread in the middle of it.

#include "engine/platform/once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/support/sanitizers.h"

#if defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace encore {
namespace {

using internal::Once;

TEST(OnceTest, IsMadeByOneThreadForAll) {
  for (int round = 0; round < 200; ++round) {
    Once<std::vector<int>> once;
    std::atomic<int> made{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        const std::vector<int>& got = once.Get([&] {
          ++made;
          return std::vector<int>(3, 7);
        });
        EXPECT_EQ(got, std::vector<int>(3, 7));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(made, 1);
    // Nobody else frees what it owns.
    const_cast<std::vector<int>&>(once.Get([] { return std::vector<int>(); })).~vector();
  }
}

TEST(OnceTest, IsTriedAgainAfterAnException) {
  Once<int> once;
  EXPECT_THROW((void)once.Get([]() -> int { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_EQ(once.Get([] { return 3; }), 3);
  EXPECT_EQ(once.Get([] { return 4; }), 3);
}

// Else exit() would run it.
static_assert(std::is_trivially_destructible_v<Once<std::string>>);

#if defined(__unix__)
TEST(OnceTest, AChildMakesWhatItsParentsThreadWasMaking) {
  if (ENCORE_TEST_TSAN) GTEST_SKIP() << "ThreadSanitizer ends such children";
  static constinit Once<int> once;
  static std::atomic<int> step{0};
  std::thread thread([] {
    (void)once.Get([] {
      step = 1;
      while (step != 2) std::this_thread::yield();
      return 5;
    });
  });
  while (step != 1) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(once.Get([] { return 6; }) == 6 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "it hung, or had something else";
  step = 2;
  thread.join();
  EXPECT_EQ(once.Get([] { return 7; }), 5);
}
#endif

}  // namespace
}  // namespace encore
