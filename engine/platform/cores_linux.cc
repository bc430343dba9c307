// SPDX-License-Identifier: Apache-2.0
//
// Cores by sysfs, which virtual machines describe better than CPUID does, quotas by cgroups, and
// masks of threads.

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

#include "engine/platform/cgroup.h"
#include "engine/platform/core_caches.h"
#include "engine/platform/core_domains.h"
#include "engine/platform/core_mask.h"
#include "engine/platform/cpu_info.h"
#include "engine/platform/system_file.h"
#include "engine/platform/thread_affinity.h"

namespace encore::inline v0_1::internal {
namespace {

CacheSizes SysfsCaches(size_t core) noexcept {
  char folder[64];
  std::snprintf(folder, sizeof(folder), "/sys/devices/system/cpu/cpu%zu", core);
  const CoreCaches files(folder);
  CacheSizes caches;
  files.ForEachOfData([&](int index, char level) {
    char memory[64];
    const size_t size = ParseCacheSize(files.Read(index, "size", memory));
    if (level == '1') caches.l1d = size;
    if (level == '2') caches.l2 = size;
    if (level == '3') caches.l3 = size;
  });
  return caches;
}

#if defined(_SC_LEVEL1_DCACHE_SIZE)
size_t SysconfSize(int name) {
  const long size = sysconf(name);
  return size > 0 ? static_cast<size_t>(size) : 0;
}
#endif

}  // namespace

CacheSizes SystemCaches() noexcept {
  CacheSizes caches = SysfsCaches(CoreMask::OfThisThread().first());
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  if (caches.l1d == 0) caches.l1d = SysconfSize(_SC_LEVEL1_DCACHE_SIZE);
  if (caches.l2 == 0) caches.l2 = SysconfSize(_SC_LEVEL2_CACHE_SIZE);
  if (caches.l3 == 0) caches.l3 = SysconfSize(_SC_LEVEL3_CACHE_SIZE);
#endif
  return caches;
}

int SystemCores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

double SystemQuota() {
  double least = 0;
  for (const CgroupFolder& folder : CpuQuotaFolders(ReadSystemFile("/proc/self/cgroup"),
                                                    ReadSystemFile("/proc/self/mountinfo"))) {
    const double quota = folder.v2
                             ? ParseCpuMax(ReadSystemFile(folder.path + "/cpu.max"))
                             : ParseCfsQuota(ReadSystemFile(folder.path + "/cpu.cfs_quota_us"),
                                             ReadSystemFile(folder.path + "/cpu.cfs_period_us"));
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
  }
  return least;
}

std::vector<int> SystemCoreList() {
  return ParseCoreList(ReadSystemFile("/sys/devices/system/cpu/online"));
}

std::vector<CorePlace> SystemPlaces(const std::vector<int>& cores) {
  return PlacesBySysfs("/sys/devices/system", cores);
}

CoreMask CoreMask::OfThread(int thread) {
  return Read([&](size_t bytes, Word* words) {
    return sched_getaffinity(thread, bytes, SystemMask(words)) == 0 ? 0 : errno;
  });
}

int CurrentCore() { return sched_getcpu(); }

void PinThisThread(int core) {
  CoreMask wanted;
  if (!wanted.Add(core)) return;
  (void)sched_setaffinity(0, wanted.bytes(), SystemMask(wanted.words()));
}

void SpreadThisThread(int /*number*/) {}

bool ThreadCores::MayGiveBack(const CoreMask& now) const {
  if (taken_ < 0 || now != ours_) return false;
  // The whole process may have been narrowed to what happens to be our mask. The mask of its main
  // thread shows that, unless it is pinned to another core of its own.
  const CoreMask main = CoreMask::OfThread(getpid());
  return main.Has(taken_) || (main.count() == 1 && main != now);
}

void ThreadCores::KeepOff(std::thread& thread, int core) {
  CoreMask wanted = CoreMask::Read([&](size_t bytes, CoreMask::Word* words) {
    return pthread_getaffinity_np(thread.native_handle(), bytes, SystemMask(words));
  });
  if (core < 0) return;
  const bool gives = MayGiveBack(wanted) && !wanted.Has(taken_) && wanted.Add(taken_);
  const bool takes = wanted.Has(core);
  wanted.Remove(core);
  if (wanted.count() == 0) return;
  const bool same = gives && taken_ == core;  // given back and taken again
  taken_ = takes ? core : -1;
  if ((gives || takes) && !same) {
    (void)pthread_setaffinity_np(thread.native_handle(), wanted.bytes(),
                                 SystemMask(wanted.words()));
  }
  ours_ = std::move(wanted);
}

void NameThisThread(const char* name) {
  char cut[16] = {};  // with its zero
  for (size_t i = 0; i + 1 < sizeof(cut) && name[i] != '\0'; ++i) cut[i] = name[i];
  (void)pthread_setname_np(pthread_self(), cut);
}

}  // namespace encore::internal
