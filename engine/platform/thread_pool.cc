// SPDX-License-Identifier: Apache-2.0
//
// The public ThreadPool: validation around worker_threads.h.

#include "encore/thread_pool.h"

#include <algorithm>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "encore/cpu.h"
#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/platform/thread_affinity.h"
#include "engine/platform/worker_threads.h"

namespace encore::inline v0_1 {

namespace {

Status CheckCores(const std::vector<int>& cores, int threads) {
  if (cores.empty()) return Status();
  if (cores.size() != static_cast<size_t>(threads) - 1) {
    return InvalidArgument("cores has " + std::to_string(cores.size()) + " entries; wanted " +
                           std::to_string(threads - 1) + ", one for each thread of " +
                           std::to_string(threads) + " but the caller's");
  }
  const internal::CoreMask allowed = internal::CoreMask::OfThisThread();
  if (allowed.count() == 0) {
    return Status(ErrorCode::kUnsupported, "cores: this system does not pin threads");
  }
  for (size_t i = 0; i < cores.size(); ++i) {
    if (!allowed.Has(cores[i])) {
      return InvalidArgument("cores[" + std::to_string(i) + "] is " + std::to_string(cores[i]) +
                             "; the calling thread may not use that core");
    }
  }
  return Status();
}

}  // namespace

ThreadPool::ThreadPool(std::unique_ptr<internal::WorkerThreads> workers)
    : workers_(std::move(workers)) {}
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
  ThreadPoolOptions known = options;
  if (known.threads == 0) known.threads = std::min(UsableCores(), kMaxThreads);
  ENCORE_RETURN_IF_ERROR(CheckCores(known.cores, known.threads));
  return ThreadPool(std::make_unique<internal::WorkerThreads>(std::move(known)));
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
} catch (const std::system_error& error) {
  return Status(ErrorCode::kUnsupported,
                std::string("the system makes no more threads: ") + error.what());
}

Executor ThreadPool::executor() const& {
  return workers_ == nullptr ? Executor() : Executor::Workers(workers_.get(), threads());
}

int ThreadPool::threads() const { return workers_ == nullptr ? 1 : workers_->threads(); }

}  // namespace encore
