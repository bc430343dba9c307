// SPDX-License-Identifier: Apache-2.0
//
// Reads /proc and sysfs.

#include "bench/measure/machine.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>
#include <system_error>

#include "engine/platform/core_domains.h"
#include "engine/platform/system_file.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

namespace encore::bench {
namespace {

const std::string kCpus = "/sys/devices/system/cpu";

Fact TextFact(const std::string& text) { return text.empty() ? Fact() : Fact(text); }
Fact NumberFact(int64_t number) { return number == 0 ? Fact() : Fact(number); }

// What the text has behind `name` and blanks; 0 if that is no number.
int64_t NumberAfter(const std::string& name, const std::string& text) {
  const size_t at = text.find(name);
  const size_t begin = at == std::string::npos ? at : text.find_first_not_of(' ', at + name.size());
  int64_t number = 0;
  if (begin != std::string::npos) {
    std::from_chars(text.data() + begin, text.data() + text.size(), number);
  }
  return number;
}

// What the first processor has under the first of these names that it has; "" if none.
std::string Value(const CpuInfo& info, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!info.empty() && info[0].contains(name)) return info[0].at(name);
  }
  return "";
}

bool HasFlag(const CpuInfo& info, const std::string& flag) {
  return (" " + Value(info, {"flags"}) + " ").find(" " + flag + " ") != std::string::npos;
}

// Of ARM "r1p2", which is variant 0x1 and revision 2.
std::string Stepping(const CpuInfo& info) {
  const std::string variant = Value(info, {"CPU variant"});
  return variant.size() < 3 ? Value(info, {"stepping"})
                            : "r" + variant.substr(2) + "p" + Value(info, {"CPU revision"});
}

std::string OfProcessor(size_t processor, const char* file) {
  return kCpus + "/cpu" + std::to_string(processor) + "/" + file;
}

// "16 x core", "8 x atom", or the names of the models or parts.
Fact CoreTypes(const SystemTree& tree, const CpuInfo& info) {
  std::map<std::string, size_t> counts;
  const std::string kind = "/sys/devices/cpu_";
  for (const std::string& path : tree.In("/sys/devices", "cpu_")) {
    const size_t count = internal::ParseCoreList(tree.Text(path + "/cpus")).size();
    if (count > 0) counts[path.substr(kind.size())] = count;
  }
  const bool named = !counts.empty();
  for (const auto& processor : info) counts[CpuModel({processor})] += named ? 0 : 1;
  std::vector<std::string> types;
  for (const auto& [name, count] : counts) {
    if (count > 0) types.push_back(std::to_string(count) + " x " + name);
  }
  return types.empty() ? Fact() : Fact(types);
}

Fact Hypervisor(const SystemTree& tree, const CpuInfo& info, const std::string& of_cpuid) {
  const std::string type = tree.Text("/sys/hypervisor/type");
  if (!type.empty() || Value(info, {"flags"}).empty()) return TextFact(type);  // ARM has no flag
  if (!HasFlag(info, "hypervisor")) return "none";
  return of_cpuid.empty() ? "unknown" : of_cpuid;
}

Fact Mitigations(const SystemTree& tree) {
  const std::string folder = kCpus + "/vulnerabilities";
  const std::vector<std::string> paths = tree.In(folder, "");
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    const std::string text = tree.Text(path);
    if (text != "Not affected") found.push_back(path.substr(folder.size() + 1) + ": " + text);
  }
  return paths.empty() ? Fact() : Fact(found);
}

// Those of all processors: mostly one.
std::string Governors(const SystemTree& tree) {
  std::set<std::string> all;
  for (const std::string& policy : tree.In(kCpus + "/cpufreq", "policy")) {
    all.insert(tree.Text(policy + "/scaling_governor"));
  }
  std::string joined;
  for (const std::string& one : all) joined += (joined.empty() ? "" : ", ") + one;
  return joined;
}

// "madvise" of "always [madvise] never".
std::string HugePages(const SystemTree& tree) {
  const std::string text = tree.Text("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t begin = text.find('[') + 1;
  return text.substr(begin, text.find(']') - begin);
}

// Of a structure of the firmware's tables, which may be anything: lengths are checked.
int64_t Byte(std::string_view fields, size_t offset) {
  return offset < fields.size() ? static_cast<unsigned char>(fields[offset]) : 0;
}
int64_t Word(std::string_view fields, size_t offset) {
  return Byte(fields, offset) + 256 * Byte(fields, offset + 1);
}

// Channels with modules, by the driver of error correction (EDAC), which may be read by anyone.
int64_t ChannelsOfDriver(const SystemTree& tree) {
  std::set<std::pair<std::string, int64_t>> channels;
  for (const std::string& controller : tree.In("/sys/devices/system/edac/mc", "mc")) {
    for (const std::string& module : tree.In(controller, "")) {  // "dimm0", "rank0"
      // "channel 1 slot 0", "csrow 0 channel 1"
      const std::string place = tree.Text(module + "/dimm_location");
      if (tree.Number(module + "/size").value_or(0) > 0) {
        channels.emplace(controller, NumberAfter("channel", place));
      }
    }
  }
  return static_cast<int64_t>(channels.size());
}

}  // namespace

std::string SystemTree::Text(const std::string& path) const {
  std::string text = internal::ReadSystemFile(root_ + path);
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

std::optional<int64_t> SystemTree::Number(const std::string& path) const {
  const std::string text = Text(path);
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::vector<std::string> SystemTree::In(const std::string& folder,
                                        const std::string& prefix) const {
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::directory_iterator entry(root_ + folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(prefix)) paths.push_back((std::filesystem::path(folder) / name).string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

CpuInfo ReadCpuInfo(const SystemTree& tree) {
  CpuInfo info;
  std::istringstream lines(tree.Text("/proc/cpuinfo"));
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, line.find_last_not_of(" \t:", colon) + 1);
    if (name == "processor") info.emplace_back();
    if (!info.empty()) info.back()[name] = line.substr(std::min(colon + 2, line.size()));
  }
  return info;
}

std::string CpuModel(const CpuInfo& info) {
  const std::string name = Value(info, {"model name"});
  const std::string part = Value(info, {"CPU part"});
  if (!name.empty() || part.empty()) return name.empty() ? "unknown" : name;
  return "implementer " + Value(info, {"CPU implementer"}) + ", part " + part;
}

int64_t ClockMhz(const SystemTree& tree, const CpuInfo& info, size_t processor) {
  const auto khz = tree.Number(OfProcessor(processor, "cpufreq/scaling_cur_freq"));
  if (khz) return *khz / 1000;
  if (!HasFlag(info, "aperfmperf") || processor >= info.size()) return 0;
  return NumberAfter("", Value({info[processor]}, {"cpu MHz"}));
}

int64_t BaseMhz(const SystemTree& tree, const CpuInfo& info, size_t processor) {
  if (const auto khz = tree.Number(OfProcessor(processor, "cpufreq/base_frequency"))) {
    return *khz / 1000;
  }
  const auto nominal = tree.Number(OfProcessor(processor, "acpi_cppc/nominal_freq"));
  // Where no clock is measured, the kernel shows the one that it found when it started.
  if (nominal || ClockMhz(tree, info, processor) > 0) return nominal.value_or(0);
  return NumberAfter("", Value(info, {"cpu MHz"}));
}

MemoryModules ParseMemoryModules(std::string_view tables) {
  static const std::map<int64_t, const char*> kTypes = {
      {0x18, "DDR3"}, {0x1A, "DDR4"}, {0x1E, "LPDDR4"}, {0x22, "DDR5"}, {0x23, "LPDDR5"}};
  MemoryModules memory;
  while (tables.size() > 4) {
    const auto length = static_cast<size_t>(Byte(tables, 1));
    const size_t end = tables.find(std::string_view("\0\0", 2), length);  // of the strings
    if (length < 4 || end == std::string_view::npos) break;
    const std::string_view fields = tables.substr(0, length);
    if (Byte(fields, 0) == 17 && Word(fields, 0x0C) != 0) {  // a slot with a module
      ++memory.count;
      const int64_t set = Word(fields, 0x20);
      const int64_t speed = set != 0 ? set : Word(fields, 0x15);
      if (memory.count == 1 || speed < memory.mt_per_s) memory.mt_per_s = speed;
      const auto type = kTypes.find(Byte(fields, 0x12));
      if (type != kTypes.end()) memory.type = type->second;
    }
    tables.remove_prefix(end + 2);
  }
  return memory;
}

std::string HypervisorOfCpuid() {
#if defined(__x86_64__) && defined(__GNUC__)
  unsigned registers[4] = {};
  __cpuid(1, registers[0], registers[1], registers[2], registers[3]);
  constexpr unsigned kPresent = 1U << 31;
  if ((registers[2] & kPresent) == 0) return "";
  __cpuid(0x40000000, registers[0], registers[1], registers[2], registers[3]);
  const auto* name = reinterpret_cast<const char*>(registers + 1);
  return {name, std::find(name, name + 12, '\0')};
#else
  return "";
#endif
}

std::vector<std::pair<std::string, Fact>> ReadHardware(const SystemTree& tree,
                                                       const std::string& hypervisor) {
  const CpuInfo info = ReadCpuInfo(tree);
  const MemoryModules memory = ParseMemoryModules(tree.Text("/sys/firmware/dmi/tables/DMI"));
  const std::string product = tree.Text("/sys/class/dmi/id/product_name");
  const std::string nodes = tree.Text("/sys/devices/system/node/online");
  const auto reserved = tree.Number("/proc/sys/vm/nr_hugepages");
  // Of all processors; 0 if it is known of none.
  const auto most = [&](const std::function<int64_t(size_t)>& of_processor) {
    int64_t found = 0;
    for (size_t i = 0; i < info.size(); ++i) found = std::max(found, of_processor(i));
    return NumberFact(found);
  };
  return {{"product", TextFact(product)},
          {"vendor", TextFact(Value(info, {"vendor_id", "CPU implementer"}))},
          {"family", TextFact(Value(info, {"cpu family", "CPU architecture"}))},
          {"model", TextFact(Value(info, {"model", "CPU part"}))},
          {"stepping", TextFact(Stepping(info))},
          {"microcode", TextFact(Value(info, {"microcode"}))},
          {"core_types", CoreTypes(tree, info)},
          {"base_mhz", most([&](size_t i) { return BaseMhz(tree, info, i); })},
          {"max_mhz", most([&](size_t i) {
             return tree.Number(OfProcessor(i, "cpufreq/cpuinfo_max_freq")).value_or(0) / 1000;
           })},
          {"current_mhz", most([&](size_t i) { return ClockMhz(tree, info, i); })},
          {"governor", TextFact(Governors(tree))},
          {"numa_nodes", NumberFact(static_cast<int64_t>(internal::ParseCoreList(nodes).size()))},
          {"memory_bytes", NumberFact(1024 * NumberAfter("MemTotal:", tree.Text("/proc/meminfo")))},
          {"memory_channels", NumberFact(ChannelsOfDriver(tree))},
          {"memory_modules", NumberFact(memory.count)},
          {"memory_type", TextFact(memory.type)},
          {"memory_mt_per_s", NumberFact(memory.mt_per_s)},
          {"huge_pages", TextFact(HugePages(tree))},
          {"huge_pages_reserved", reserved ? Fact(*reserved) : Fact()},
          {"hypervisor", Hypervisor(tree, info, hypervisor)},
          {"mitigations", Mitigations(tree)}};
}

}  // namespace encore::bench
