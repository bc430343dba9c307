// SPDX-License-Identifier: Apache-2.0
//
// Energy, clock, temperature and throttling, by what Linux shows of the processor's own meters.

#ifndef ENCORE_BENCH_MEASURE_SENSORS_H_
#define ENCORE_BENCH_MEASURE_SENSORS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/machine.h"

namespace encore::bench {

// Nothing where there is no meter, or none that this user may read.
struct SensorValues {
  std::optional<double> watts;           // the mean since Start()
  std::optional<int64_t> clock_mhz;      // at the end
  std::optional<int64_t> temperature_c;  // at the end; the hottest of the processor's sensors
  std::optional<bool> throttled;         // since Start()
};

class Sensors {
 public:
  // Energy is that of all packages and their DRAM by RAPL (powercap), else of the processor's
  // meters of hwmon.
  explicit Sensors(SystemTree tree = SystemTree());

  // "package-0, dram"; "" if no energy can be read.
  const std::string& energy_source() const { return energy_source_; }

  void Start();
  // `seconds` after Start(): counters may wrap once meanwhile. The clock is that of this processor,
  // which should have been busy for the last 10 ms. It counts as throttled if the kernel counted
  // that, on any processor, or if its clock is below 95 % of its base.
  SensorValues Stop(double seconds, size_t processor) const;

 private:
  struct Meter {
    std::string path;
    bool is_power = false;  // uW now; else a counter of uJ
    int64_t range = 0;      // of the counter, before it begins at 0 again; 0: unknown
    std::optional<int64_t> start = {};
  };

  void AddMeter(const std::string& name, Meter meter);
  std::optional<int64_t> Throttles() const;
  std::optional<int64_t> Temperature() const;

  SystemTree tree_;
  std::vector<Meter> meters_;
  std::string energy_source_;
  std::optional<int64_t> throttles_;
};

// Of several spans, one at least: the mean power, the lowest clock, the highest temperature, and
// throttled if any was.
SensorValues Together(const std::vector<SensorValues>& all);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_SENSORS_H_
