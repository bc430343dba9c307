// SPDX-License-Identifier: Apache-2.0
//
// A child made by fork() has none of its parent's threads: its calls with a pool or with OpenMP run
// on its own thread, with the same bits, and it ends as it should. The tests that call hang in the
// child where this is not seen to.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "tests/support/compare.h"
#include "tests/support/sanitizers.h"

#if defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace encore {
namespace {

#if defined(__unix__)

// A pool whose threads, under AddressSanitizer, have all begun: one that is about to holds locks of
// the sanitizer, for which a child made then would wait forever.
ThreadPool MakePool(int threads) {
  static std::atomic<int> begun{0};
  begun = 0;
  ThreadPoolOptions options{.threads = threads};
  if (ENCORE_TEST_ASAN) options.on_start = [](int) { ++begun; };
  ThreadPool pool = *ThreadPool::Create(options);
  while (ENCORE_TEST_ASAN && begun < threads - 1) std::this_thread::yield();
  return pool;
}

// Runs body in a child and gives its exit status, or 100 + the signal that ended it. A child that
// hangs ends by an alarm.
template <typename F>
int ExitStatusOfChild(const F& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSlow ? 120 : 20);
    body();
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

class ForkTest : public testing::Test {
 protected:
  ForkTest() { pool_.emplace(MakePool(2)); }
  void SetUp() override {
    if (ENCORE_TEST_TSAN) GTEST_SKIP() << "ThreadSanitizer ends such children";
  }

  std::vector<float> Run(const Executor& executor) const {
    return Forward(encoder_, Batch{{0, 100, 130}}, x_, executor);
  }

  const EncoderModel model_{{.d_model = 64, .num_heads = 4, .d_ff = 256, .num_layers = 2}};
  const Encoder encoder_ = model_.Make();
  const std::vector<float> x_ = RandomFloats(130 * 64, 1);
  const std::vector<float> want_ = Run(Executor::Inline());
  std::optional<ThreadPool> pool_;
};

TEST_F(ForkTest, AnInheritedPoolRunsOnTheCaller) {
  ASSERT_TRUE(SameBits(Run(pool_->executor()), want_));
  EXPECT_EQ(ExitStatusOfChild([&] {
              for (int call = 0; call < 3; ++call) {
                if (!SameBits(Run(pool_->executor()), want_)) _exit(1);
              }
            }),
            0);
  EXPECT_TRUE(SameBits(Run(pool_->executor()), want_)) << "the parent's, after the child's";
}

TEST_F(ForkTest, TheChildMakesAPoolOfItsOwnAndDestroysTheOther) {
  EXPECT_EQ(ExitStatusOfChild([&] {
              const ThreadPool own = MakePool(3);
              if (!SameBits(Run(own.executor()), want_)) _exit(2);
              pool_.reset();
              if (!SameBits(Run(own.executor()), want_)) _exit(3);
              // A child of the child has that pool to do without.
              const int status = ExitStatusOfChild([&] {
                if (!SameBits(Run(own.executor()), want_)) _exit(4);
              });
              if (status != 0) _exit(status);
            }),
            0);
}

TEST_F(ForkTest, AChildThatMerelyExitsDestroysStaticPools) {
  static ThreadPool pool = MakePool(3);
  ASSERT_TRUE(SameBits(Run(pool.executor()), want_));
  EXPECT_EQ(ExitStatusOfChild([] { std::exit(0); }), 0);
}

TEST_F(ForkTest, OpenMPAfterItsThreadsRan) {
  ASSERT_TRUE(SameBits(Run(Executor::OpenMP(2)), want_));
  EXPECT_EQ(ExitStatusOfChild([&] {
              if (!SameBits(Run(Executor::OpenMP(2)), want_)) _exit(1);
            }),
            0);
}

#endif

}  // namespace
}  // namespace encore
