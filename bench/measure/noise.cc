// SPDX-License-Identifier: Apache-2.0
//
// Reads /proc/stat and asks for the process's own time. Linux only; elsewhere nothing is known.

#include "bench/measure/noise.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#if defined(__linux__)
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace encore::bench {

std::optional<CpuTimes> ParseCpuTimes(const std::string& line, double ticks_per_second) {
  // user, nice, system, idle, iowait, irq, softirq, steal (proc(5)). Guests' time, which may
  // follow, is in user's and nice's already.
  constexpr int kIdle = 3;
  constexpr int kIoWait = 4;
  constexpr int kSteal = 7;
  std::istringstream words(line);
  std::string name;
  CpuTimes times;
  if (!(words >> name) || name != "cpu") return std::nullopt;
  for (int i = 0; i <= kSteal; ++i) {
    double ticks = 0;
    if (!(words >> ticks)) return std::nullopt;
    const double seconds = ticks / ticks_per_second;
    times.all += seconds;
    if (i == kSteal) {
      times.stolen = seconds;
    } else if (i != kIdle && i != kIoWait) {
      times.busy += seconds;
    }
  }
  return times;
}

std::optional<CpuTimes> ReadCpuTimes() {
#if defined(__linux__)
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  std::optional<CpuTimes> times = ParseCpuTimes(line, static_cast<double>(sysconf(_SC_CLK_TCK)));
  rusage usage{};
  if (!times || getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
    times->own += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return times;
#else
  return std::nullopt;
#endif
}

OtherLoad LoadBetween(const std::optional<CpuTimes>& before, const std::optional<CpuTimes>& after) {
  if (!before || !after || !(after->all > before->all)) return {};
  const double percent = 100 / (after->all - before->all);
  const double others = after->busy - before->busy - (after->own - before->own);
  // Ticks are coarse, so that there may be a little less than none.
  return {.steal_percent = std::max(0.0, after->stolen - before->stolen) * percent,
          .busy_percent = std::max(0.0, others) * percent};
}

}  // namespace encore::bench
