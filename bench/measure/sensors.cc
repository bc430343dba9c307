// SPDX-License-Identifier: Apache-2.0
//
// Reads powercap, hwmon, cpufreq and thermal_throttle below /sys.

#include "bench/measure/sensors.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace encore::bench {
namespace {

constexpr const char* kHwmon = "/sys/class/hwmon";
constexpr const char* kPowercap = "/sys/class/powercap";

bool HasAny(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

}  // namespace

Sensors::Sensors(SystemTree tree) : tree_(std::move(tree)) {
  for (const std::string& zone : tree_.In(kPowercap, "intel-rapl:")) {  // AMD's too
    const std::string name = tree_.Text(zone + "/name");
    // Cores and uncore are parts of a package; psys is the whole machine.
    if (!HasAny(name, {"package", "dram"})) continue;
    AddMeter(name, {.path = zone + "/energy_uj",
                    .range = tree_.Number(zone + "/max_energy_range_uj").value_or(0)});
  }
  if (!meters_.empty()) return;
  for (const std::string& chip : tree_.In(kHwmon, "hwmon")) {
    for (const char* kind : {"energy", "power"}) {
      for (const std::string& label : tree_.In(chip, kind)) {
        const std::string name = tree_.Text(label);
        if (!label.ends_with("_label") || !HasAny(name, {"CPU", "cpu", "socket"})) continue;
        AddMeter(name, {.path = label.substr(0, label.size() - 5) + "input",
                        .is_power = kind == std::string("power")});
      }
      if (!meters_.empty()) return;  // others may measure the same
    }
  }
}

void Sensors::AddMeter(const std::string& name, Meter meter) {
  if (!tree_.Number(meter.path)) return;  // of RAPL: since 2020 root alone may
  energy_source_ += (energy_source_.empty() ? "" : ", ") + name;
  meters_.push_back(std::move(meter));
}

std::optional<int64_t> Sensors::Throttles() const {
  std::optional<int64_t> counts;
  for (const std::string& cpu : tree_.In("/sys/devices/system/cpu", "cpu")) {
    for (const char* kind : {"core", "package"}) {
      const auto count = tree_.Number(cpu + "/thermal_throttle/" + kind + "_throttle_count");
      if (count) counts = counts.value_or(0) + *count;
    }
  }
  return counts;
}

std::optional<int64_t> Sensors::Temperature() const {
  std::optional<int64_t> hottest;
  for (const std::string& chip : tree_.In(kHwmon, "hwmon")) {
    const std::string name = tree_.Text(chip + "/name");
    if (!HasAny(name, {"coretemp", "k10temp", "zenpower", "xgene", "cpu", "soc"})) continue;
    for (const std::string& path : tree_.In(chip, "temp")) {
      if (path.ends_with("_input")) hottest = std::max(hottest, tree_.Number(path));
    }
  }
  return hottest ? std::optional(*hottest / 1000) : std::nullopt;
}

void Sensors::Start() {
  throttles_ = Throttles();
  for (Meter& meter : meters_) meter.start = tree_.Number(meter.path);
}

SensorValues Sensors::Stop(double seconds, size_t processor) const {
  constexpr double kLeastOfBase = 0.95;  // clocks move in steps of up to 4 %
  SensorValues values;
  const CpuInfo info = ReadCpuInfo(tree_);
  if (const int64_t mhz = ClockMhz(tree_, info, processor)) values.clock_mhz = mhz;
  double joules = 0;
  bool known = !meters_.empty() && seconds > 0;
  for (const Meter& meter : meters_) {
    const std::optional<int64_t> now = tree_.Number(meter.path);
    const bool wrapped = !meter.is_power && now < meter.start;
    known = known && now && meter.start && !(wrapped && meter.range == 0);
    if (!known) break;
    joules += 1e-6 * (meter.is_power
                          ? static_cast<double>(*now) * seconds
                          : static_cast<double>(*now - *meter.start + (wrapped ? meter.range : 0)));
  }
  if (known) values.watts = joules / seconds;
  values.temperature_c = Temperature();
  const std::optional<int64_t> throttles = Throttles();
  if (throttles && throttles_) values.throttled = *throttles > *throttles_;
  const int64_t base = BaseMhz(tree_, info, processor);
  if (values.clock_mhz && base > 0) {
    const bool slow =
        static_cast<double>(*values.clock_mhz) < kLeastOfBase * static_cast<double>(base);
    values.throttled = values.throttled.value_or(false) || slow;
  }
  return values;
}

SensorValues Together(const std::vector<SensorValues>& all) {
  SensorValues together = all.front();
  double watts = 0;
  for (const SensorValues& one : all) {
    watts += one.watts.value_or(0) / static_cast<double>(all.size());
    together.clock_mhz = std::min(together.clock_mhz, one.clock_mhz);
    together.temperature_c = std::max(together.temperature_c, one.temperature_c);
    together.throttled = std::max(together.throttled, one.throttled);
  }
  if (together.watts) together.watts = watts;
  return together;
}

}  // namespace encore::bench
