// SPDX-License-Identifier: Apache-2.0
//
// Caches, cores and nodes by GetLogicalProcessorInformationEx, and threads in groups of cores.

#include <windows.h>
// After that one
#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "engine/platform/core_domains.h"
#include "engine/platform/path.h"
#include "engine/platform/thread_affinity.h"

namespace encore::inline v0_1::internal {
namespace {

using Relation = SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX;

// Cores are in groups of up to 64. Core n of group g has the number 64 g + n here.
constexpr int kGroupCores = 64;

// Calls use(const Relation&) of all there are of one kind.
template <typename F>
void ForEachRelation(LOGICAL_PROCESSOR_RELATIONSHIP kind, const F& use) {
  DWORD bytes = 0;
  (void)::GetLogicalProcessorInformationEx(kind, nullptr, &bytes);
  const std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
  if (!memory) return;
  auto* const first = reinterpret_cast<Relation*>(memory.get());
  if (::GetLogicalProcessorInformationEx(kind, first, &bytes) == 0) return;
  for (DWORD at = 0; at < bytes;) {
    const auto& relation = *reinterpret_cast<const Relation*>(memory.get() + at);
    use(relation);
    at += relation.Size;
  }
}

// Calls use(int core) of each core of a group's mask.
template <typename F>
void ForEachCore(int group, KAFFINITY mask, const F& use) {
  for (; mask != 0; mask &= mask - 1) use(group * kGroupCores + std::countr_zero(mask));
}

// Calls use(int group, KAFFINITY mask) with the running cores of each group.
template <typename F>
void ForEachGroup(const F& use) {
  ForEachRelation(RelationGroup, [&](const Relation& relation) {
    for (int group = 0; group < relation.Group.ActiveGroupCount; ++group) {
      use(group, relation.Group.GroupInfo[group].ActiveProcessorMask);
    }
  });
}

// Calls use(int core) of a cache's or a node's cores. Older systems leave the count 0.
template <typename F>
void ForEachCoreOf(const GROUP_AFFINITY* masks, int count, const F& use) {
  for (int i = 0; i < std::max(count, 1); ++i) ForEachCore(masks[i].Group, masks[i].Mask, use);
}

// Where the calling thread may run, of its group. *all: that is the whole group.
GROUP_AFFINITY OwnGroup(bool* all) {
  GROUP_AFFINITY own = {};
  if (::GetThreadGroupAffinity(::GetCurrentThread(), &own) == 0) return {};
  KAFFINITY active = 0;
  ForEachGroup([&](int group, KAFFINITY mask) {
    if (group == own.Group) active = mask;
  });
  own.Mask &= active;
  *all = own.Mask == active;
  return own;
}

}  // namespace

CacheSizes SystemCaches() noexcept {
  const auto core = static_cast<int>(CoreMask::OfThisThread().first());
  CacheSizes caches;
  ForEachRelation(RelationCache, [&](const Relation& relation) {
    const CACHE_RELATIONSHIP& cache = relation.Cache;
    if (cache.Type == CacheInstruction || cache.Type == CacheTrace) return;
    ForEachCoreOf(cache.GroupMasks, cache.GroupCount, [&](int of) {
      if (of != core) return;
      if (cache.Level == 1) caches.l1d = cache.CacheSize;
      if (cache.Level == 2) caches.l2 = cache.CacheSize;
      if (cache.Level == 3) caches.l3 = cache.CacheSize;
    });
  });
  return caches;
}

int SystemCores() { return static_cast<int>(::GetActiveProcessorCount(ALL_PROCESSOR_GROUPS)); }

double SystemQuota() { return 0; }

std::vector<int> SystemCoreList() {
  std::vector<int> cores;
  ForEachGroup([&](int group, KAFFINITY mask) {
    ForEachCore(group, mask, [&](int core) { cores.push_back(core); });
  });
  return cores;
}

std::vector<CorePlace> SystemPlaces(const std::vector<int>& cores) {
  std::map<int, CorePlace> of;
  int number = 0;
  ForEachRelation(RelationNumaNode, [&](const Relation& relation) {
    const NUMA_NODE_RELATIONSHIP& node = relation.NumaNode;
    ForEachCoreOf(node.GroupMasks, node.GroupCount,
                  [&](int core) { of[core].node = static_cast<int>(node.NodeNumber); });
  });
  ForEachRelation(RelationCache, [&](const Relation& relation) {
    const CACHE_RELATIONSHIP& cache = relation.Cache;
    if (cache.Level != 3) return;
    ForEachCoreOf(cache.GroupMasks, cache.GroupCount, [&](int core) { of[core].cache = number; });
    ++number;
  });
  ForEachRelation(RelationProcessorCore, [&](const Relation& relation) {
    const PROCESSOR_RELATIONSHIP& core = relation.Processor;
    ForEachCoreOf(core.GroupMask, core.GroupCount, [&](int thread) { of[thread].core = number; });
    ++number;
  });
  std::vector<CorePlace> places;
  for (const int core : cores) places.push_back(of[core]);
  return places;
}

// A thread that may run on all of its group may be sent to other groups too (SpreadThisThread).
CoreMask CoreMask::OfThread(int /*thread*/) {
  bool all = false;
  const GROUP_AFFINITY own = OwnGroup(&all);
  CoreMask mask;
  bool fits = true;
  const auto add = [&](int core) { fits = mask.Add(core) && fits; };
  if (all) {
    ForEachGroup([&](int group, KAFFINITY cores) { ForEachCore(group, cores, add); });
  } else {
    ForEachCore(own.Group, own.Mask, add);
  }
  return fits ? std::move(mask) : CoreMask();
}

int CurrentCore() {
  PROCESSOR_NUMBER number = {};
  ::GetCurrentProcessorNumberEx(&number);
  return number.Group * kGroupCores + number.Number;
}

void PinThisThread(int core) {
  GROUP_AFFINITY wanted = {};
  wanted.Group = static_cast<WORD>(core / kGroupCores);
  wanted.Mask = KAFFINITY{1} << core % kGroupCores;
  (void)::SetThreadGroupAffinity(::GetCurrentThread(), &wanted, nullptr);
}

void SpreadThisThread(int number) {
  if (::GetActiveProcessorGroupCount() < 2) return;
  bool all = false;
  const GROUP_AFFINITY own = OwnGroup(&all);
  if (!all) return;
  int left = number % static_cast<int>(::GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
  left -= std::popcount(own.Mask);
  if (left < 0) return;
  ForEachGroup([&](int group, KAFFINITY mask) {
    if (group == own.Group || left < 0) return;
    left -= std::popcount(mask);
    if (left >= 0) return;
    GROUP_AFFINITY wanted = {};
    wanted.Group = static_cast<WORD>(group);
    wanted.Mask = mask;
    (void)::SetThreadGroupAffinity(::GetCurrentThread(), &wanted, nullptr);
  });
}

// Windows wakes a thread on an idle core.
void ThreadCores::KeepOff(std::thread& /*thread*/, int /*core*/) {}

void NameThisThread(const char* name) {
  (void)::SetThreadDescription(::GetCurrentThread(), ToPath(name).c_str());
}

}  // namespace encore::internal
