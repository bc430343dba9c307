// SPDX-License-Identifier: Apache-2.0
//
// The machine as its kernel and its firmware describe it. Linux only; elsewhere nothing is known.

#ifndef ENCORE_BENCH_MEASURE_MACHINE_H_
#define ENCORE_BENCH_MEASURE_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace encore::bench {

// Files of /proc and /sys, or of a recorded copy of them, which has `root` for "/".
class SystemTree {
 public:
  SystemTree() = default;
  explicit SystemTree(std::string root) : root_(std::move(root)) {}

  // Without white space at the end; "" if it cannot be read.
  std::string Text(const std::string& path) const;
  // The integer that the text begins with; nothing if it begins otherwise.
  std::optional<int64_t> Number(const std::string& path) const;
  // The paths in a folder whose names begin with `prefix`, sorted.
  std::vector<std::string> In(const std::string& folder, const std::string& prefix) const;

 private:
  std::string root_;
};

// Name and value of each line of /proc/cpuinfo, of each processor.
using CpuInfo = std::vector<std::map<std::string, std::string>>;
CpuInfo ReadCpuInfo(const SystemTree& tree);

// "AMD EPYC 9B45 64-Core Processor", of ARM "implementer 0x41, part 0xd40", or "unknown".
std::string CpuModel(const CpuInfo& info);

// The clock of a processor now, 0 where it is not measured, as on most virtual machines; and the
// one that it is sold with, 0 if unknown.
int64_t ClockMhz(const SystemTree& tree, const CpuInfo& info, size_t processor);
int64_t BaseMhz(const SystemTree& tree, const CpuInfo& info, size_t processor);

// Memory modules in the firmware's tables (SMBIOS, DSP0134: structures of type 17); 0 or "" where
// they do not say.
struct MemoryModules {
  int64_t count = 0;
  int64_t mt_per_s = 0;  // millions of transfers a second that are set; the slowest module's
  std::string type = {};
};
MemoryModules ParseMemoryModules(std::string_view tables);

// Name and value, nothing where it cannot be read, of the members of `hardware` in
// report.schema.json, which says what they are. hypervisor: as CPUID calls it.
using Fact = std::variant<std::monostate, int64_t, std::string, std::vector<std::string>>;
std::vector<std::pair<std::string, Fact>> ReadHardware(const SystemTree& tree,
                                                       const std::string& hypervisor);

// What the CPUID instruction calls it: "KVMKVMKVM"; "" without one, and on other processors.
std::string HypervisorOfCpuid();

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_MACHINE_H_
