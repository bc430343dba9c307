// SPDX-License-Identifier: Apache-2.0
//
// The choice, and the pools that were made.

#include "bench/measure/threads.h"

#include <map>
#include <string>
#include <utility>

#include "bench/measure/cpus.h"
#include "encore/thread_pool.h"

namespace encore::bench {
namespace {

ThreadChoice& Choice() {
  static ThreadChoice choice;
  return choice;
}

}  // namespace

std::string_view ThreadSourceName(ThreadSource source) {
  return source == ThreadSource::kPool ? "pool" : "openmp";
}

Result<ThreadSource> ThreadSourceFromName(std::string_view name) {
  for (const ThreadSource source : {ThreadSource::kPool, ThreadSource::kOpenMp}) {
    if (name == ThreadSourceName(source)) return source;
  }
  return Status(ErrorCode::kInvalidArgument,
                "found '" + std::string(name) + "', wanted pool or openmp");
}

const std::vector<int>& CpusOfProcess() {
  static const std::vector<int> cpus = AllowedCpus();
  return cpus;
}

void BindFor(int threads) {
  const std::vector<int>& cpus = CpusOfProcess();
  // The highest core, since interrupts tend to go to the lowest.
  (void)RunOn(threads == 1 && !cpus.empty() ? std::vector<int>{cpus.back()} : cpus);
}

void ChooseThreads(const ThreadChoice& choice) { Choice() = choice; }

const ThreadChoice& ChosenThreads() { return Choice(); }

Result<Executor> ExecutorOf(int threads) {
  if (threads == 1) return Executor::Inline();
  if (Choice().source == ThreadSource::kOpenMp) return Executor::OpenMP(threads);
  static std::map<std::pair<int, std::chrono::microseconds>, ThreadPool> pools;
  const std::pair key(threads, Choice().idle_spin);
  auto found = pools.find(key);
  if (found == pools.end()) {
    Result<ThreadPool> pool =
        ThreadPool::Create({.threads = threads, .idle_spin = Choice().idle_spin});
    if (!pool.ok()) return pool.status();
    found = pools.emplace(key, *std::move(pool)).first;
  }
  return found->second.executor();
}

}  // namespace encore::bench
