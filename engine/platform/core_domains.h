// SPDX-License-Identifier: Apache-2.0
//
// What each system says of its cores, in a file of its own (cores_linux.cc and so on), and the pure
// parts of CoreDomains() of cpu.h.

#ifndef ENCORE_ENGINE_PLATFORM_CORE_DOMAINS_H_
#define ENCORE_ENGINE_PLATFORM_CORE_DOMAINS_H_

#include <string>
#include <string_view>
#include <vector>

#include "encore/cpu.h"

namespace encore::inline v0_1::internal {

// "0-2,8" is {0, 1, 2, 8}, as sysfs lists cores and nodes; empty if it cannot be understood.
std::vector<int> ParseCoreList(std::string_view text);

// Where a core is. Numbers that are the same say that two cores share something.
struct CorePlace {
  int node = 0;
  int cache = -1;  // of the third level; -1 if it is not known
  int core = -1;   // with whose other threads this one shares it; -1 if it has none
};
// Of each core by sysfs. `root` is /sys/devices/system or a copy of it.
std::vector<CorePlace> PlacesBySysfs(const std::string& root, const std::vector<int>& cores);

// The domains of cores, which ascend and are not empty, in these places.
std::vector<CoreDomain> JoinDomains(const std::vector<int>& cores,
                                    const std::vector<CorePlace>& places);

// Of a core that the calling thread may run on; 0 for what the system does not say.
CacheSizes SystemCaches() noexcept;
// Those that are running; 0 if the system does not say.
int SystemCores();
// How many CPUs' time the process may use; 0 if that is not limited.
double SystemQuota();
// The numbers of those that are running, which ascend; empty if the system does not say.
std::vector<int> SystemCoreList();
// Of each of these cores.
std::vector<CorePlace> SystemPlaces(const std::vector<int>& cores);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_CORE_DOMAINS_H_
