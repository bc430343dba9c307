// SPDX-License-Identifier: Apache-2.0
//
// The options' bounds.

#include "bench/measure/run_options.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <system_error>

#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "encore/executor.h"

namespace encore::bench {
namespace {

Status Wrong(const std::string& sentence) { return Status(ErrorCode::kInvalidArgument, sentence); }

}  // namespace

Precision RunOptions::precision() const { return *PrecisionFromName(precision_name); }

Result<std::vector<int>> RunOptions::Apply() const {
  if (executor == "inline") {
    if (threads != RunOptions().threads && threads != std::vector<std::string>{"1"}) {
      return Wrong("--threads: found another number than 1, which --executor inline has");
    }
    return RunOptions{.threads = {"1"}, .idle_spin = idle_spin, .target = target}.Apply();
  }
  const ThreadSource source = *ThreadSourceFromName(executor);
  if (idle_spin > 0 && source != ThreadSource::kPool) {
    return Wrong("--idle-spin is for --executor pool, found " + executor);
  }
  const bool openmp = source == ThreadSource::kOpenMp;
  std::vector<int> counts;
  for (const std::string& text : threads) {
    const int all = openmp ? Executor::OpenMP().threads() : UsableCores();
    int count = all;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, count);
    if (text != "all" &&
        (error != std::errc() || stop != end || count < 1 || count > kMaxThreads)) {
      return Wrong("--threads: found '" + text + "', wanted numbers from 1 to " +
                   std::to_string(kMaxThreads) + " or all");
    }
    const int given = openmp ? Executor::OpenMP(count).threads() : count;
    if (given < count) {
      return Wrong("--threads: found " + text + ", wanted as many as OpenMP gives here at most, " +
                   std::to_string(given));
    }
    if (std::count(counts.begin(), counts.end(), count) == 0) counts.push_back(count);
  }
  ChooseThreads({.source = source, .idle_spin = std::chrono::microseconds(idle_spin)});
  if (!target.empty()) {
    const Status status = SetTarget(target);
    if (!status.ok()) return Wrong("--target: " + status.message());
  }
  return counts;
}

}  // namespace encore::bench
