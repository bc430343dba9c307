// SPDX-License-Identifier: Apache-2.0
//
// Lists of cores, and what sysfs says of them.

#include "bench/measure/cpus.h"

#include <algorithm>
#include <fstream>

#include "engine/platform/core_domains.h"
#include "engine/platform/core_mask.h"
#include "engine/platform/system_file.h"

namespace encore::bench {
namespace {

// A file's list; none where there is no such file.
std::vector<int> CpusIn(const std::string& path) {
  return internal::ParseCoreList(internal::ReadSystemFile(path));
}

bool Has(const std::vector<int>& cpus, int cpu) {
  return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
}

// What a word leaves of the cores; none where it is none, or not of this machine.
std::vector<int> PartOf(std::vector<int> cpus, const std::string& word, const std::string& sysfs) {
  const auto of_cpu = [&](int cpu, const std::string& file) {
    return sysfs + "/system/cpu/cpu" + std::to_string(cpu) + "/" + file;
  };
  if (word == "no-smt") {
    const std::vector<int> all = cpus;
    std::erase_if(cpus, [&](int cpu) {
      const std::vector<int> threads = CpusIn(of_cpu(cpu, "topology/thread_siblings_list"));
      return std::any_of(threads.begin(), threads.end(),
                         [&](int other) { return other < cpu && Has(all, other); });
    });
    return cpus;
  }
  const bool fast = word == "p-cores";
  std::vector<int> part = CpusIn(sysfs + "/system/node/" + word + "/cpulist");
  if (fast || word == "e-cores") {  // of Intel; of Arm by each core's capacity
    part = CpusIn(sysfs + (fast ? "/cpu_core/cpus" : "/cpu_atom/cpus"));
    std::vector<int> capacities;
    for (const int cpu : cpus)
      std::ifstream(of_cpu(cpu, "cpu_capacity")) >> capacities.emplace_back();
    const auto [least, most] = std::minmax_element(capacities.begin(), capacities.end());
    for (size_t i = 0; i < cpus.size() && *least < *most; ++i) {
      if (capacities[i] == (fast ? *most : *least)) part.push_back(cpus[i]);
    }
  }
  std::erase_if(cpus, [&](int cpu) { return !Has(part, cpu); });
  return cpus;
}

}  // namespace

Result<std::vector<int>> ChooseCpus(const std::vector<std::string>& entries,
                                    const std::vector<int>& allowed, const std::string& sysfs) {
  const auto wrong = [](const std::string& found, const std::string& wanted) {
    return Status(ErrorCode::kInvalidArgument, "found " + found + ", wanted " + wanted);
  };
  std::vector<int> cpus;
  for (const std::string& entry : entries) {
    for (const int cpu : internal::ParseCoreList(entry)) {
      if (!Has(allowed, cpu)) {
        return wrong("core " + std::to_string(cpu), "some of " + CpuListText(allowed));
      }
      if (!Has(cpus, cpu)) cpus.push_back(cpu);
    }
  }
  std::sort(cpus.begin(), cpus.end());
  if (cpus.empty()) cpus = allowed;
  for (const std::string& entry : entries) {
    if (!internal::ParseCoreList(entry).empty()) continue;
    cpus = PartOf(std::move(cpus), entry, sysfs);
    if (cpus.empty()) {
      return wrong("'" + entry + "'",
                   "cores such as 0-7, or no-smt, p-cores, e-cores or node0 where there are some");
    }
  }
  return cpus;
}

std::string CpuListText(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0, next = 0; i < cpus.size(); i = next) {
    for (next = i + 1; next < cpus.size() && cpus[next] == cpus[next - 1] + 1;) ++next;
    text += (i == 0 ? "" : ",") + std::to_string(cpus[i]);
    if (next > i + 1) text += "-" + std::to_string(cpus[next - 1]);
  }
  return text;
}

std::vector<int> AllowedCpus() { return internal::CoreMask::OfThisThread().cores(); }

bool RunOn(const std::vector<int>& cpus) {
  internal::CoreMask mask;
  for (const int cpu : cpus) {
    if (!mask.Add(cpu)) return false;
  }
#if defined(__linux__)
  return !cpus.empty() &&
         sched_setaffinity(0, mask.bytes(), internal::SystemMask(mask.words())) == 0;
#else
  return false;
#endif
}

}  // namespace encore::bench
