// SPDX-License-Identifier: Apache-2.0
//
// The choice, and the pools that were made.

#include "bench/measure/threads.h"

#include <map>
#include <string>
#include <utility>

#include "bench/measure/os.h"
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

void BindFor(int threads) {
  static const CoreMask cores;
  cores.Bind(threads == 1 ? cores.Last() : -1);
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
