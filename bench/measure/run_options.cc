// SPDX-License-Identifier: Apache-2.0
//
// The options' bounds.

#include "bench/measure/run_options.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "bench/measure/cpus.h"
#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "encore/executor.h"

namespace encore::bench {
namespace {

Status Wrong(const std::string& sentence) { return Status(ErrorCode::kInvalidArgument, sentence); }

// "3" or "all"; else 0.
int CountOf(const std::string& text, int all) {
  int count = 0;
  const char* const end = text.data() + text.size();
  if (text == "all") return all;
  return std::from_chars(text.data(), end, count).ptr == end ? count : 0;
}

}  // namespace

Result<std::vector<int>> RunOptions::Apply() const {
  if (executor == "inline") {
    if (threads != RunOptions().threads && threads != std::vector<std::string>{"1"}) {
      return Wrong("--threads: found another number than 1, which --executor inline has");
    }
    return RunOptions{.threads = {"1"}, .idle_spin = idle_spin, .target = target, .cpus = cpus}
        .Apply();
  }
  const ThreadSource source = *ThreadSourceFromName(executor);
  if (idle_spin > 0 && source != ThreadSource::kPool) {
    return Wrong("--idle-spin is for --executor pool, found " + executor);
  }
  std::string cpus_text;
  if (!cpus.empty()) {
    const Result<std::vector<int>> chosen = ChooseCpus(cpus, AllowedCpus());
    if (!chosen.ok()) return Wrong("--cpus: " + chosen.status().message());
    if (!RunOn(*chosen)) return Wrong("--cpus: the system does not bind threads to cores");
    cpus_text = CpuListText(*chosen);
  }
  (void)CpusOfProcess();  // while this thread has the mask of the process
  const bool openmp = source == ThreadSource::kOpenMp;
  // OpenMP's runtime may have counted the cores before they were chosen.
  const int most = openmp ? Executor::OpenMP().threads() : UsableCores();
  const int all = cpus.empty() ? most : std::min(most, UsableCores());
  std::vector<int> counts;
  for (const std::string& text : threads) {
    const size_t dots = text.find("..");
    const int first = CountOf(text.substr(0, dots), all);
    const int last = dots == std::string::npos ? first : CountOf(text.substr(dots + 2), all);
    if (first < 1 || last < first || last > kMaxThreads) {
      return Wrong("--threads: found '" + text + "', wanted numbers from 1 to " +
                   std::to_string(kMaxThreads) + ", all, or a sweep such as 1..all");
    }
    const int given = openmp ? Executor::OpenMP(last).threads() : last;
    if (given < last) {
      return Wrong("--threads: found " + text + ", wanted as many as OpenMP gives here at most, " +
                   std::to_string(given));
    }
    for (int count = first; count <= last; ++count) {
      if (std::count(counts.begin(), counts.end(), count) == 0) counts.push_back(count);
    }
  }
  ChooseThreads(
      {.source = source, .idle_spin = std::chrono::microseconds(idle_spin), .cpus = cpus_text});
  if (!target.empty()) {
    const Status status = SetTarget(target);
    if (!status.ok()) return Wrong("--target: " + status.message());
  }
  return counts;
}

}  // namespace encore::bench
