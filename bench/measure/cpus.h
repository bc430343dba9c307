// SPDX-License-Identifier: Apache-2.0
//
// Which cores a measurement runs on: lists such as Linux has them, and words for parts of a
// machine. The library never binds a thread; a measurement on a machine with other work does, so
// that its thread keeps its caches. Linux only, elsewhere nothing is bound.

#ifndef ENCORE_BENCH_MEASURE_CPUS_H_
#define ENCORE_BENCH_MEASURE_CPUS_H_

#include <string>
#include <vector>

#include "encore/status.h"

namespace encore::bench {

// Of `allowed`, those that all entries leave; both ascend. "3" and "0-7" are cores, together those
// of all such entries. Words are parts of the machine as sysfs has it: "no-smt", one thread of each
// core; "p-cores" and "e-cores", the faster and the slower type where there are two; "node0", a
// NUMA node. kInvalidArgument for others, and where none is left.
Result<std::vector<int>> ChooseCpus(const std::vector<std::string>& entries,
                                    const std::vector<int>& allowed,
                                    const std::string& sysfs = "/sys/devices");

// "0-3,8".
std::string CpuListText(const std::vector<int>& cpus);

// Those that the calling thread may run on; none where the system does not tell.
std::vector<int> AllowedCpus();
// Lets the calling thread, and those that it starts, run on these alone; whether it worked.
bool RunOn(const std::vector<int>& cpus);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_CPUS_H_
