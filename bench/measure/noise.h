// SPDX-License-Identifier: Apache-2.0
//
// What else ran on the machine meanwhile.

#ifndef ENCORE_BENCH_MEASURE_NOISE_H_
#define ENCORE_BENCH_MEASURE_NOISE_H_

#include <optional>
#include <string>

namespace encore::bench {

// Seconds of all cores together since the system started, and of this process.
struct CpuTimes {
  double all = 0;
  double stolen = 0;  // by the hypervisor, for other machines
  double busy = 0;    // with any process of this system
  double own = 0;     // with this process
};

// Reads the first line of /proc/stat, whose unit is a tick; own is 0. Nothing if
// it is no such line.
std::optional<CpuTimes> ParseCpuTimes(const std::string& line, double ticks_per_second);

// Now, or nothing where the system has no /proc/stat.
std::optional<CpuTimes> ReadCpuTimes();

// Percent of all cores' time between two moments; -1 if unknown.
struct OtherLoad {
  double steal_percent = -1;
  double busy_percent = -1;  // with other processes
};
OtherLoad LoadBetween(const std::optional<CpuTimes>& before, const std::optional<CpuTimes>& after);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_NOISE_H_
