// SPDX-License-Identifier: Apache-2.0
//
// The pure parts of cpu.h, for tests: how the core count is chosen, and how sysfs writes sizes.

#ifndef ENCORE_ENGINE_PLATFORM_CPU_INFO_H_
#define ENCORE_ENGINE_PLATFORM_CPU_INFO_H_

#include <cstddef>
#include <string_view>

#include "encore/cpu.h"

namespace encore::inline v0_1::internal {

// The least of the three, with a reason; 0 stands for "unknown" (online, affinity) and "not
// limited" (quota, in CPUs).
CoreCount ChooseCores(int online, int affinity, double cgroup_quota);

// UsableCores() for a thread without an affinity mask. Reads some files.
int OnlineCores() noexcept;

// "48K\n" is 49152; suffixes K, M and G; 0 if it cannot be understood.
size_t ParseCacheSize(std::string_view text);

// ActiveTarget() without an allocation; the name lives forever.
std::string_view ActiveTargetName();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_CPU_INFO_H_
