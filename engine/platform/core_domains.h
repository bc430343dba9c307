// SPDX-License-Identifier: Apache-2.0
//
// The pure parts of CoreDomains() of cpu.h, for tests: what is read from sysfs.

#ifndef ENCORE_ENGINE_PLATFORM_CORE_DOMAINS_H_
#define ENCORE_ENGINE_PLATFORM_CORE_DOMAINS_H_

#include <string>
#include <string_view>
#include <vector>

#include "encore/cpu.h"

namespace encore::inline v0_1::internal {

// "0-2,8" is {0, 1, 2, 8}, as sysfs lists cores and nodes; empty if it cannot be understood.
std::vector<int> ParseCoreList(std::string_view text);

// The domains of the cores in `allowed`, which ascend and are not empty. `root` is
// /sys/devices/system or a copy of it.
std::vector<CoreDomain> FindCoreDomains(const std::string& root, const std::vector<int>& allowed);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_CORE_DOMAINS_H_
