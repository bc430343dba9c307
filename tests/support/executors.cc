// SPDX-License-Identifier: Apache-2.0
//
// The list of executors.

#include "tests/support/executors.h"

#include <chrono>
#include <utility>

#include "gtest/gtest.h"

// LLVM's OpenMP runtime keeps what it allocated for threads until the end of the process.
extern "C" const char* __lsan_default_suppressions() { return "leak:libomp.so"; }

namespace encore {

Executors::Executors() {
  all_.push_back({"inline", Executor::Inline()});
  for (const int threads : {1, 2, 3, 7}) {
    const std::string count = std::to_string(threads);
    all_.push_back({"OpenMP " + count, Executor::OpenMP(threads)});
    pools_.push_back(std::make_unique<HostPool>(threads));
    all_.push_back({"host pool " + count, Executor::HostPool(threads, *pools_.back())});
    // One of them looks for its next call for a while, as a host may wish.
    Result<ThreadPool> pool = ThreadPool::Create(
        {.threads = threads, .idle_spin = std::chrono::microseconds(threads == 3 ? 200 : 0)});
    if (!pool.ok()) {
      ADD_FAILURE() << pool.status().message();
      continue;
    }
    thread_pools_.push_back(*std::move(pool));
    all_.push_back({"pool " + count, thread_pools_.back().executor()});
  }
  all_.push_back({"host loop 5", Executor::HostPool(5, loop_)});
}

}  // namespace encore
