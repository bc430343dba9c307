// SPDX-License-Identifier: Apache-2.0
//
// How much memory a process has at most, as Linux tells it.

#ifndef ENCORE_TESTS_SUPPORT_PEAK_MEMORY_H_
#define ENCORE_TESTS_SUPPORT_PEAK_MEMORY_H_

#include <cstddef>
#include <fstream>
#include <optional>
#include <string>

#include "tests/support/sanitizers.h"

namespace encore {

// Bytes by a key of /proc/self/status.
inline size_t StatusBytes(const std::string& wanted) {
  std::ifstream status("/proc/self/status");
  size_t kilobytes = 0;
  for (std::string key; status >> key;) {
    if (key == wanted && status >> kilobytes) break;
  }
  return kilobytes * 1024;
}

// The most resident memory while this runs, above that before it; none where the system does not
// tell.
template <typename F>
std::optional<size_t> PeakOf(const F& run) {
  std::ofstream reset("/proc/self/clear_refs");
  if (kEmulated || kSanitized || !(reset << "5" << std::flush)) return std::nullopt;
  const size_t before = StatusBytes("VmRSS:");
  run();
  return StatusBytes("VmHWM:") - before;
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_PEAK_MEMORY_H_
