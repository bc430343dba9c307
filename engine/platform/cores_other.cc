// SPDX-License-Identifier: Apache-2.0
//
// Where threads run wherever the system wants, and all cores are alike. macOS tells its caches: of
// cores of two speeds those of the fast ones, and not which core is which.

#if defined(__APPLE__)
#include <sys/sysctl.h>
#include <sys/types.h>
#endif

#include <cstddef>
#include <cstdint>
#include <thread>

#include "engine/platform/core_domains.h"
#include "engine/platform/thread_affinity.h"

namespace encore::inline v0_1::internal {

CacheSizes SystemCaches() noexcept {
#if defined(__APPLE__)
  const auto cache = [](const char* of_fast_cores, const char* of_all) {
    for (const char* name : {of_fast_cores, of_all}) {
      uint64_t value = 0;  // it writes 4 or 8 bytes, lowest first
      size_t bytes = sizeof(value);
      if (::sysctlbyname(name, &value, &bytes, nullptr, 0) == 0) return static_cast<size_t>(value);
    }
    return size_t{0};
  };
  return {.l1d = cache("hw.perflevel0.l1dcachesize", "hw.l1dcachesize"),
          .l2 = cache("hw.perflevel0.l2cachesize", "hw.l2cachesize"),
          .l3 = cache("hw.perflevel0.l3cachesize", "hw.l3cachesize")};
#else
  return {};
#endif
}

int SystemCores() { return static_cast<int>(std::thread::hardware_concurrency()); }
double SystemQuota() { return 0; }
std::vector<int> SystemCoreList() { return {}; }
std::vector<CorePlace> SystemPlaces(const std::vector<int>& cores) {
  return std::vector<CorePlace>(cores.size());
}

CoreMask CoreMask::OfThread(int /*thread*/) { return {}; }
int CurrentCore() { return -1; }
void PinThisThread(int /*core*/) {}
void SpreadThisThread(int /*number*/) {}
void ThreadCores::KeepOff(std::thread& /*thread*/, int /*core*/) {}
void NameThisThread(const char* /*name*/) {}

}  // namespace encore::internal
