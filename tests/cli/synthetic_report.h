// SPDX-License-Identifier: Apache-2.0
//
// Reports that no machine made: figures drawn around given speeds with the kinds of noise that runs
// have, for tests of reading, comparing and pages.

#ifndef ENCORE_TESTS_CLI_SYNTHETIC_REPORT_H_
#define ENCORE_TESTS_CLI_SYNTHETIC_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/encore/report_data.h"

namespace encore {

struct SyntheticRun {
  uint64_t seed = 1;
  double speed = 1;          // of everything; the roofs stay as they are
  double slot_noise = 0.02;  // standard deviations of logarithms: of a row's slots,
  double run_drift = 0;      // of the machine between runs, roofs included,
  double row_drift = 0;      // of the machine between rows, roofs included
  double row_noise = 0;      // and of a row's time alone
  std::vector<std::string> targets = {"AVX3_ZEN4", "AVX2"};  // measured, of the machine's
  std::vector<int> threads = {1, 2};
  size_t slots = 25;
};

tool::Report SyntheticReport(const SyntheticRun& run);

// As `encore bench --json` writes it.
std::string SyntheticJson(const tool::Report& report);

}  // namespace encore

#endif  // ENCORE_TESTS_CLI_SYNTHETIC_REPORT_H_
