// SPDX-License-Identifier: Apache-2.0
//
// Where a benchmark's threads come from: one choice for the whole process, and an executor for each
// number of threads.

#ifndef ENCORE_BENCH_MEASURE_THREADS_H_
#define ENCORE_BENCH_MEASURE_THREADS_H_

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "encore/executor.h"
#include "encore/status.h"

namespace encore::bench {

enum class ThreadSource { kPool, kOpenMp };
// "pool", "openmp".
std::string_view ThreadSourceName(ThreadSource source);
Result<ThreadSource> ThreadSourceFromName(std::string_view name);

struct ThreadChoice {
  ThreadSource source = ThreadSource::kPool;
  std::chrono::microseconds idle_spin{0};  // as ThreadPoolOptions has it; of a pool only
  std::string cpus = {};                   // that were asked for, "0-3"; empty: all
};
inline constexpr int kMaxIdleSpin = 1000000;  // us, what a ThreadPool takes at most
inline constexpr int kMaxThreads = 1024;      // that are ever asked for

// What ExecutorOf and context.h go by from then on; not thread-safe.
void ChooseThreads(const ThreadChoice& choice);
const ThreadChoice& ChosenThreads();

// Inline for one thread; for more a ThreadPool, made when it is first asked for and kept to the end
// of the process, or OpenMP. A pool's threads run where the calling thread may run at that moment.
// Without OpenMP, or under its thread limit, OpenMP's executor has fewer threads() than asked for.
Result<Executor> ExecutorOf(int threads);

// Those that the first call of this found the calling thread to be allowed.
const std::vector<int>& CpusOfProcess();

// Binds the calling thread to a core if it is to work alone, so that it keeps its caches on a
// machine with other work; else frees it, since threads that it starts inherit its mask.
void BindFor(int threads);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_THREADS_H_
