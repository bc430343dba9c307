// SPDX-License-Identifier: Apache-2.0
//
// The public ThreadPool: validation around worker_threads.h.

#include "encore/thread_pool.h"

#include <algorithm>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "encore/cpu.h"
#include "engine/base/out_of_memory.h"
#include "engine/platform/worker_threads.h"

namespace encore {

struct ThreadPool::Impl {
  Impl(int threads, std::chrono::microseconds idle_spin) : workers(threads, idle_spin) {}
  internal::WorkerThreads workers;
};

ThreadPool::ThreadPool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ThreadPool::ThreadPool(ThreadPool&&) noexcept = default;
ThreadPool& ThreadPool::operator=(ThreadPool&&) noexcept = default;
ThreadPool::~ThreadPool() = default;

Result<ThreadPool> ThreadPool::Create(const ThreadPoolOptions& options) try {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return InvalidArgument("threads is " + std::to_string(options.threads) + "; wanted 0 to " +
                           std::to_string(kMaxThreads));
  }
  if (options.idle_spin.count() < 0 || options.idle_spin > std::chrono::seconds(1)) {
    return InvalidArgument("idle_spin is " + std::to_string(options.idle_spin.count()) +
                           " us; wanted 0 to 1000000");
  }
  const int threads = options.threads > 0 ? options.threads : std::min(UsableCores(), kMaxThreads);
  return ThreadPool(std::make_unique<Impl>(threads, options.idle_spin));
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
} catch (const std::system_error& error) {
  return Status(ErrorCode::kUnsupported,
                std::string("the system makes no more threads: ") + error.what());
}

Executor ThreadPool::executor() const {
  return impl_ == nullptr ? Executor() : Executor::Workers(&impl_->workers, threads());
}

int ThreadPool::threads() const { return impl_ == nullptr ? 1 : impl_->workers.threads(); }

}  // namespace encore
