// SPDX-License-Identifier: Apache-2.0
//
// What the text files of Linux control groups (v1 and v2) say about CPU quotas. Pure functions of
// text; the files are read in cpu_info.cc. Formats: cgroups(7) for /proc/self/cgroup, proc(5) for
// mountinfo, and the kernel's admin-guide/cgroup-v2 (cpu.max) and scheduler/sched-bwc (cpu.cfs_*).

#ifndef ENCORE_ENGINE_PLATFORM_CGROUP_H_
#define ENCORE_ENGINE_PLATFORM_CGROUP_H_

#include <string>
#include <string_view>
#include <vector>

namespace encore::inline v0_1::internal {

// A folder that may hold a CPU quota: in v2 in cpu.max, in v1 in cpu.cfs_quota_us and
// cpu.cfs_period_us.
struct CgroupFolder {
  bool v2 = false;
  std::string path;  // no slash at the end
  friend bool operator==(const CgroupFolder&, const CgroupFolder&) = default;
};

// Every folder whose quota binds this process: its own groups and all their parents up to the
// mount, innermost first. `self_cgroup` and `mountinfo` are the contents of /proc/self/cgroup and
// /proc/self/mountinfo. A group outside of the mount (a container sees only its part of
// the tree) counts as the mount itself.
std::vector<CgroupFolder> CpuQuotaFolders(std::string_view self_cgroup, std::string_view mountinfo);

// CPUs by cpu.max: "150000 100000" is 1.5, "max 100000" is 0 (no limit), as is what cannot be
// understood.
double ParseCpuMax(std::string_view cpu_max);

// CPUs by v1's pair of files; 0 if the quota is negative (no limit) or one cannot be understood.
double ParseCfsQuota(std::string_view quota_us, std::string_view period_us);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_CGROUP_H_
