// SPDX-License-Identifier: Apache-2.0
//
// Text calls and what happens to the process meanwhile: exit() while threads are in a call, and
// fork(), whose child has one of its parent's threads and may call. The tests of fork() hang in the
// child where this is not seen to.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "encore/c_api.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "tests/support/compare.h"
#include "tests/support/sanitizers.h"
#include "tests/support/text_case.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>

namespace encore {
namespace {

// Letters with marks, an added token and Chinese: every table of characters is looked at.
const char* const kTexts[] = {"The c\xC3\xA4t s\xC3\xA9t \xE4\xB8\xAD on [SEP] mat",
                              "B\xCC\x81 \xEF\xAC\x81 kitten", "a"};

std::vector<float> TextValues(const Result<Embeddings>& result) {
  if (!result.ok()) return {};
  const auto* data = static_cast<const float*>(result->vectors.data());
  return std::vector<float>(data, data + result->vectors.size_bytes() / sizeof(float));
}

// The exit status of a child, or 100 + the signal that ended it.
int ExitStatusOf(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

// Calls body() in `children` children, each of which is given some seconds, while threads of this
// process call busy(). How many children hung or failed.
int FailedChildren(int children, const std::function<bool()>& busy,
                   const std::function<bool()>& body) {
  std::atomic<bool> stop{false};
  std::atomic<int> begun{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        if (!busy()) ++wrong;
        ++begun;
      }
    });
  }
  while (begun < 8) std::this_thread::yield();
  int failed = 0;
  for (int i = 0; i < children && failed < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      _exit(body() ? 0 : 1);
    }
    failed += ExitStatusOf(child) == 0 ? 0 : 1;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  return failed;
}

// A child made while another thread is about to allocate waits for the sanitizers' locks.
constexpr bool kForksWithThreads = !kSanitized;
constexpr int kChildren = 500;

TEST(TextProcessTest, ExitWhileThreadsAreInACall) {
  const TextFolder folder;
  for (int run = 0; run < (kSlow ? 3 : 6); ++run) {
    const pid_t child = fork();
    if (child == 0) {
      // What is registered first runs last: threads go on for a while after what the library
      // might have registered. And memory that was freed does not look as it was.
      std::atexit([] { usleep(100000); });
#if defined(__GLIBC__)
      mallopt(M_PERTURB, 0x5A);
#endif
      static const TextEncoder* model;  // threads use it to the end
      Result<TextEncoder> opened = TextEncoder::Open(folder.path());
      if (!opened.ok()) _exit(1);
      model = new TextEncoder(*opened);
      static const auto* pool = new ThreadPool(*ThreadPool::Create({.threads = 2}));
      static const int way = run % 3;
      static std::atomic<int> begun{0};
      for (int t = 0; t < 6; ++t) {
        std::thread([] {
          for (;;) {
            const Executor executor = way == 0   ? Executor::Inline()
                                      : way == 1 ? pool->executor()
                                                 : Executor::OpenMP(2);
            const std::vector<std::string_view> texts(std::begin(kTexts), std::end(kTexts));
            if (!model->Encode(texts, {.executor = executor}).ok()) _exit(2);
            ++begun;
          }
        }).detach();
      }
      while (begun < 12) std::this_thread::yield();
      std::exit(0);
    }
    ASSERT_EQ(ExitStatusOf(child), 0) << "run " << run;
  }
}

TEST(TextProcessTest, AChildEncodesThoughItsParentsThreadsWereInACall) {
  if (!kForksWithThreads) GTEST_SKIP() << "the sanitizers' own locks are inherited";
  const TextFolder folder;
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  const std::vector<float> want = TextValues(model.Encode({kTexts[0], kTexts[2]}));
  const auto same = [&] {
    const std::vector<float> found = TextValues(model.Encode({kTexts[0], kTexts[2]}));
    return !found.empty() && SameBits(found, want);
  };
  const auto few = [&] { return model.Encode({"a"}).ok(); };
  EXPECT_EQ(FailedChildren(kChildren, few, same), 0);
}

TEST(TextProcessTest, AndThroughTheCInterfaceWithItsThreads) {
  if (!kForksWithThreads) GTEST_SKIP() << "the sanitizers' own locks are inherited";
  const TextFolder folder;
  encore_open_options options = {};
  options.size = sizeof options;
  options.threads = 2;
  encore_model* model = nullptr;
  ASSERT_EQ(encore_open(folder.path().c_str(), &options, &model), ENCORE_OK) << encore_last_error();
  const auto encode = [&] {
    const encore_text texts[] = {{kTexts[2], 1}, {kTexts[2], 1}};
    float vectors[2 * 32];
    return encore_dimensions(model) == 32 &&
           encore_encode(model, texts, 2, nullptr, vectors, 2 * 32, nullptr, nullptr) == ENCORE_OK;
  };
  EXPECT_EQ(FailedChildren(kChildren, encode, encode), 0);
  encore_free(model);
}

TEST(TextProcessTest, AChildOpensThoughItsParentsThreadsWereAboutTo) {
  if (!kForksWithThreads) GTEST_SKIP() << "the sanitizers' own locks are inherited";
  const TextFolder folder;
  const auto open = [&] {
    const Result<TextEncoder> model = TextEncoder::Open(folder.path());
    return model.ok() && model->Encode({kTexts[0]}).ok();
  };
  EXPECT_EQ(FailedChildren(100, open, open), 0);
}

}  // namespace
}  // namespace encore
#endif
