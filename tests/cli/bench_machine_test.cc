// SPDX-License-Identifier: Apache-2.0
//
// What a report says of machines, on copies of their /proc and /sys.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bench/measure/cpus.h"
#include "bench/measure/machine.h"
#include "bench/measure/models.h"
#include "bench/measure/sensors.h"
#include "nlohmann/json.hpp"
#include "tests/support/safetensors_bytes.h"
#include "tools/encore/bench_measure.h"
#include "tools/encore/bench_table.h"
#include "tools/encore/report_data.h"

namespace encore::bench {
namespace {

using Texts = std::vector<std::string>;

// A machine of tests/data/machines, whose files may be changed.
class RecordedTree {
 public:
  explicit RecordedTree(const std::string& name) {
    std::ifstream lines(ENCORE_TEST_DATA_DIR "/machines/" + name + ".tsv");
    EXPECT_TRUE(lines.is_open()) << name;
    std::map<std::string, std::string> files;
    for (std::string line; std::getline(lines, line);) {
      const size_t tab = line.find('\t');
      files[line.substr(0, tab)] += line.substr(tab + 1) + "\n";
    }
    for (const auto& [path, text] : files) Write(path, text);
  }
  SystemTree tree() const { return SystemTree(folder_.path().string()); }
  void Write(const std::string& path, const std::string& text) const {
    const std::string file = folder_.path().string() + path;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  void Remove(const std::string& path) const {
    EXPECT_GT(std::filesystem::remove_all(folder_.path().string() + path), 0u) << path;
  }

 private:
  TemporaryFolder folder_;
};

std::map<std::string, Fact> HardwareOf(const RecordedTree& machine,
                                       const std::string& hypervisor = "") {
  std::map<std::string, Fact> facts;
  for (auto& [name, fact] : ReadHardware(machine.tree(), hypervisor)) {
    EXPECT_TRUE(facts.emplace(name, fact).second) << name << " is there twice";
  }
  return facts;
}

void ExpectFacts(const std::map<std::string, Fact>& found,
                 const std::map<std::string, Fact>& expected) {
  for (const auto& [name, fact] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_TRUE(found.at(name) == fact) << name << " is kind " << found.at(name).index();
  }
  EXPECT_EQ(found.size(), expected.size());
}

TEST(Machine, ZenServer) {
  ExpectFacts(HardwareOf(RecordedTree("zen")),
              {{"product", "H13SSL-N"},
               {"vendor", "AuthenticAMD"},
               {"family", "25"},
               {"model", "17"},
               {"stepping", "1"},
               {"microcode", "0xa101148"},
               {"core_types", Texts{"2 x AMD EPYC 9654 96-Core Processor"}},
               {"base_mhz", int64_t{2400}},
               {"max_mhz", int64_t{3707}},
               {"current_mhz", int64_t{3698}},
               {"governor", "performance"},
               {"numa_nodes", int64_t{2}},
               {"memory_bytes", int64_t{791083236} * 1024},
               {"memory_channels", int64_t{4}},  // two of each of two controllers, in two ranks
               {"memory_modules", {}},
               {"memory_type", {}},
               {"memory_mt_per_s", {}},
               {"huge_pages", "always"},
               {"huge_pages_reserved", int64_t{512}},
               {"hypervisor", "none"},
               {"mitigations", Texts{"spectre_v1: Mitigation: usercopy/swapgs barriers and __user "
                                     "pointer sanitization"}}});
}

TEST(Machine, HybridDesktop) {
  const auto facts = HardwareOf(RecordedTree("hybrid"));
  EXPECT_TRUE(facts.at("core_types") == Fact(Texts{"16 x atom", "16 x core"}));
  EXPECT_TRUE(facts.at("base_mhz") == Fact(int64_t{3000}));
  EXPECT_TRUE(facts.at("max_mhz") == Fact(int64_t{5800}));
  EXPECT_TRUE(facts.at("current_mhz") == Fact(int64_t{5500}));
  EXPECT_TRUE(facts.at("governor") == Fact("performance, powersave"));
  EXPECT_TRUE(facts.at("memory_channels") == Fact());
  EXPECT_TRUE(facts.at("mitigations") == Fact(Texts{}));  // known to be none
}

TEST(Machine, ArmServer) {
  const RecordedTree machine("arm_server");
  const auto facts = HardwareOf(machine);
  EXPECT_TRUE(facts.at("vendor") == Fact("0x41"));
  EXPECT_TRUE(facts.at("family") == Fact("8"));
  EXPECT_TRUE(facts.at("model") == Fact("0xd0c"));
  EXPECT_TRUE(facts.at("stepping") == Fact("r3p1"));
  EXPECT_TRUE(facts.at("microcode") == Fact());
  EXPECT_TRUE(facts.at("core_types") == Fact(Texts{"4 x implementer 0x41, part 0xd0c"}));
  EXPECT_TRUE(facts.at("base_mhz") == Fact(int64_t{3000}));
  EXPECT_TRUE(facts.at("hypervisor") == Fact());
  EXPECT_EQ(CpuModel(ReadCpuInfo(machine.tree())), "implementer 0x41, part 0xd0c");
}

TEST(Machine, VirtualMachineHasNoClock) {
  const RecordedTree machine("virtual");
  auto facts = HardwareOf(machine, "KVMKVMKVM");
  EXPECT_TRUE(facts.at("hypervisor") == Fact("KVMKVMKVM"));
  EXPECT_TRUE(facts.at("base_mhz") == Fact(int64_t{2596}));
  EXPECT_TRUE(facts.at("current_mhz") == Fact());
  EXPECT_TRUE(facts.at("max_mhz") == Fact());
  EXPECT_TRUE(facts.at("huge_pages") == Fact("madvise"));
  EXPECT_EQ(std::get<Texts>(facts.at("mitigations")).size(), 4u);
  EXPECT_EQ(CpuModel(ReadCpuInfo(machine.tree())), "AMD EPYC");
  EXPECT_TRUE(HardwareOf(machine).at("hypervisor") == Fact("unknown"));
  machine.Write("/sys/hypervisor/type", "xen\n");
  EXPECT_TRUE(HardwareOf(machine).at("hypervisor") == Fact("xen"));
}

TEST(Machine, WhatCannotBeReadIsThereAndNothing) {
  const TemporaryFolder empty;
  const auto expected = HardwareOf(RecordedTree("zen"));
  const auto facts = ReadHardware(SystemTree(empty.path().string()), "");
  EXPECT_EQ(facts.size(), expected.size());
  for (const auto& [name, fact] : facts) {
    EXPECT_TRUE(expected.contains(name)) << name;
    EXPECT_TRUE(fact == Fact()) << name;
  }
  EXPECT_EQ(CpuModel({}), "unknown");
}

// One structure: type, length, handle, fields up to `length`, strings.
std::string Structure(char type, size_t length, const std::map<size_t, int>& words,
                      const std::string& strings) {
  std::string bytes(length, '\1');
  bytes[0] = type;
  bytes[1] = static_cast<char>(length);
  for (const auto& [offset, word] : words) {
    bytes[offset] = static_cast<char>(word & 255);
    if (offset + 1 < length) bytes[offset + 1] = static_cast<char>(word >> 8);
  }
  return bytes + strings + std::string(strings.empty() ? 2 : 1, '\0');
}

TEST(Machine, MemoryModulesOfTheFirmware) {
  const std::string names("DIMM A1\0P0 CHANNEL A\0", 21);
  const auto module = [&](int megabytes, int speed, int set) {
    return Structure(17, 0x28, {{0x0C, megabytes}, {0x12, 0x22}, {0x15, speed}, {0x20, set}},
                     names);
  };
  const std::string tables = Structure(4, 0x30, {}, names) + module(32767, 5600, 4800) +
                             Structure(16, 0x17, {}, "") + module(0, 5600, 5600) +
                             module(32767, 4800, 4400) + module(32767, 5600, 0) +
                             Structure(127, 4, {}, "");
  const MemoryModules found = ParseMemoryModules(tables);
  EXPECT_EQ(found.count, 3);
  EXPECT_EQ(found.type, "DDR5");
  EXPECT_EQ(found.mt_per_s, 4400);
  // A short structure of an old specification has no set speed.
  EXPECT_EQ(ParseMemoryModules(Structure(17, 0x17, {{0x0C, 8}, {0x15, 2666}}, "")).mt_per_s, 2666);
  for (size_t size = 0; size < tables.size(); ++size) {  // cut off anywhere
    EXPECT_LE(ParseMemoryModules(std::string_view(tables).substr(0, size)).count, 3);
  }
  EXPECT_EQ(ParseMemoryModules(std::string(1000, '\0')).count, 0);
  EXPECT_EQ(ParseMemoryModules(std::string(1000, '\xff')).count, 0);

  const RecordedTree machine("zen");
  machine.Write("/sys/firmware/dmi/tables/DMI", tables);
  EXPECT_TRUE(HardwareOf(machine).at("memory_type") == Fact("DDR5"));
  EXPECT_TRUE(HardwareOf(machine).at("memory_mt_per_s") == Fact(int64_t{4400}));
  EXPECT_TRUE(HardwareOf(machine).at("memory_modules") == Fact(int64_t{3}));
}

// ---- Energy, clock, temperature
// ------------------------------------------------------------------

const std::string kRapl = "/sys/class/powercap/intel-rapl:";
const std::string kCpu = "/sys/devices/system/cpu/cpu";

TEST(Sensors, CountersOfPackagesWrap) {
  const RecordedTree machine("zen");
  Sensors sensors(machine.tree());
  EXPECT_EQ(sensors.energy_source(), "package-0");  // its cores are in it
  sensors.Start();                                  // at 65532.000000 J of 65532.610987
  machine.Write(kRapl + "0/energy_uj", "99389013\n");
  const SensorValues values = sensors.Stop(0.5, 1);
  ASSERT_TRUE(values.watts);
  EXPECT_DOUBLE_EQ(*values.watts, 200);  // 0.610987 J before and 99.389013 after it began anew
  EXPECT_EQ(values.clock_mhz, 3698);
  EXPECT_EQ(values.temperature_c, 52);  // not the disk's 81
  EXPECT_EQ(values.throttled, false);   // above its base of 2400
  sensors.Start();
  machine.Write(kRapl + "0/energy_uj", "100389013\n");
  EXPECT_DOUBLE_EQ(sensors.Stop(0.5, 1).watts.value_or(0), 2);
  machine.Remove(kRapl + "0/energy_uj");
  EXPECT_FALSE(sensors.Stop(0.5, 1).watts);
}

TEST(Sensors, PackageAndDramCountOnce) {
  const RecordedTree machine("hybrid");
  Sensors sensors(machine.tree());
  EXPECT_EQ(sensors.energy_source(), "package-0, dram");  // no cores, psys or second way to read
  sensors.Start();
  machine.Write(kRapl + "0/energy_uj", "262153000000\n");  // 10 J more
  machine.Write(kRapl + "0:2/energy_uj", "7000000\n");     // 2 J more
  machine.Write(kRapl + "0:0/energy_uj", "9000000\n");
  machine.Write(kRapl + "1/energy_uj", "99000000\n");
  EXPECT_DOUBLE_EQ(sensors.Stop(2, 0).watts.value_or(0), 6);
  machine.Remove(kRapl + "0:2/energy_uj");  // as an ordinary user has it
  EXPECT_EQ(Sensors(machine.tree()).energy_source(), "package-0");
}

TEST(Sensors, ThrottlingIsCountedOrSeenByTheClock) {
  const RecordedTree machine("hybrid");
  Sensors sensors(machine.tree());
  sensors.Start();
  EXPECT_EQ(sensors.Stop(1, 0).throttled, false);
  EXPECT_EQ(sensors.Stop(1, 0).temperature_c, 71);
  machine.Write(kCpu + "1/thermal_throttle/package_throttle_count", "8\n");
  EXPECT_EQ(sensors.Stop(1, 0).throttled, true);
  sensors.Start();  // not in this span
  EXPECT_EQ(sensors.Stop(1, 0).throttled, false);
  machine.Write(kCpu + "1/cpufreq/scaling_cur_freq", "2100000\n");  // of 2200
  EXPECT_EQ(sensors.Stop(1, 1).throttled, false);
  machine.Write(kCpu + "1/cpufreq/scaling_cur_freq", "2000000\n");
  EXPECT_EQ(sensors.Stop(1, 1).throttled, true);
  EXPECT_EQ(sensors.Stop(1, 0).throttled, false);  // the other core's base is another
}

TEST(Sensors, PowerAndEnergyOfArm) {
  const RecordedTree machine("arm_server");
  const std::string hwmon = "/sys/class/hwmon/hwmon0/";
  Sensors sensors(machine.tree());
  EXPECT_EQ(sensors.energy_source(), "CPU power");
  sensors.Start();
  EXPECT_DOUBLE_EQ(sensors.Stop(3, 0).watts.value_or(0), 62);
  EXPECT_EQ(sensors.Stop(3, 0).temperature_c, 41);
  EXPECT_EQ(sensors.Stop(3, 0).throttled, true);  // 2800 of 3000 MHz

  machine.Write(hwmon + "energy1_label", "cpu_energy\n");
  machine.Write(hwmon + "energy1_input", "5000000\n");
  machine.Write(hwmon + "energy2_label", "gpu_energy\n");
  machine.Write(hwmon + "energy2_input", "1\n");
  Sensors counters(machine.tree());
  EXPECT_EQ(counters.energy_source(), "cpu_energy");  // which says more than power now and then
  counters.Start();
  machine.Write(hwmon + "energy1_input", "11000000\n");
  EXPECT_DOUBLE_EQ(counters.Stop(3, 0).watts.value_or(0), 2);
  machine.Write(hwmon + "energy1_input", "4000000\n");  // began anew, and no range is known
  EXPECT_FALSE(counters.Stop(3, 0).watts);
}

TEST(Sensors, NothingIsKnownOfVirtualMachines) {
  Sensors sensors(RecordedTree("virtual").tree());
  EXPECT_EQ(sensors.energy_source(), "");
  sensors.Start();
  const SensorValues values = sensors.Stop(1, 0);
  EXPECT_FALSE(values.watts || values.clock_mhz || values.temperature_c || values.throttled);
}

TEST(Sensors, SpansOfARowTogether) {
  SensorValues first;
  first.watts = 10;
  first.clock_mhz = 3000;
  first.temperature_c = 50;
  SensorValues second;
  second.watts = 30;
  second.clock_mhz = 2900;
  second.throttled = true;
  const SensorValues both = Together({first, second});
  EXPECT_EQ(both.clock_mhz, 2900);
  EXPECT_EQ(both.watts, 20);
  EXPECT_EQ(both.temperature_c, 50);
  EXPECT_EQ(both.throttled, true);
}

// On a machine whose processor always takes 62 W.
TEST(Sensors, ARowHasItsEnergy) {
  const RecordedTree machine("arm_server");
  for (const int cpu : AllowedCpus()) {  // on any of which the thread may be
    machine.Write(kCpu + std::to_string(cpu) + "/cpufreq/scaling_cur_freq", "1000000\n");
    machine.Write(kCpu + std::to_string(cpu) + "/acpi_cppc/nominal_freq", "3000\n");
  }
  tool::BenchMeasurer measurer(0.02, Sensors(machine.tree()));
  measurer.roofs().Measure(1);
  const NamedWorkload* load = FindWorkload("example_32x10");
  ASSERT_NE(load, nullptr);
  for (int visit = 0; visit < 2; ++visit) measurer.Measure(*load, {}, 1, false);
  const tool::Report report = measurer.Finish();
  const tool::ReportRow& row = report.rows.at(0);
  ASSERT_TRUE(row.joules);
  EXPECT_GE(*row.joules, 62 * row.seconds.min * (1 - 1e-9));
  EXPECT_LE(*row.joules, 62 * row.seconds.max * (1 + 1e-9));

  const auto json = nlohmann::json::parse(tool::ReportJson(report));
  EXPECT_EQ(json["run"]["energy_source"], "CPU power");
  EXPECT_NEAR(json["run"]["idle_watts"].get<double>(), 62, 1e-9);
  const auto& sensors = json["rows"][0]["sensors"];
  EXPECT_NEAR(sensors["watts"].get<double>(), 62, 1e-9);
  EXPECT_EQ(sensors["throttled"], true);
  EXPECT_NEAR(sensors["joules_per_text"].get<double>() * 32, *row.joules, 1e-9);
  EXPECT_NEAR(sensors["joules_per_token"].get<double>() * 320, *row.joules, 1e-9);
  EXPECT_NEAR(sensors["tokens_per_joule"].get<double>() * *row.joules, 320, 1e-6);
  bool told = false;
  for (const std::string& note : report.noise.notes) told |= note.ends_with("in 1 of 1 row");
  EXPECT_TRUE(told);
  std::ostringstream table;
  tool::BenchTable(tool::BenchKind::kLayers).PrintRow(table, row, false);
  EXPECT_NE(table.str().find(" mJ/token; "), std::string::npos) << table.str();
  EXPECT_NE(table.str().find(" MHz; 41 C; throttled"), std::string::npos) << table.str();
}

}  // namespace
}  // namespace encore::bench
