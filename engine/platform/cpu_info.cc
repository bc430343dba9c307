// SPDX-License-Identifier: Apache-2.0
//
// What the system says about caches, cores and SIMD targets.
//
// This file is compiled with the HWY_DISABLED_TARGETS of the whole build
// (tools/cmake/EncoreCompileOptions.cmake), so its HWY_TARGETS is the list of targets that kernels
// are compiled for.

#include "engine/platform/cpu_info.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>

#include "engine/base/guarded.h"
#include "engine/base/number_text.h"
#include "engine/base/simd_targets.h"
#include "engine/platform/amx.h"
#include "engine/platform/core_domains.h"
#include "engine/platform/core_mask.h"
#include "engine/platform/fp_env.h"
#include "hwy/targets.h"

namespace encore::inline v0_1 {
namespace {

// Each bit of a set of Highway's targets, best (lowest) first.
std::vector<int64_t> Bits(int64_t set) {
  std::vector<int64_t> bits;
  for (; set != 0; set &= set - 1) bits.push_back(set & -set);
  return bits;
}

// With AMX it is one of Highway's targets and more.
constexpr std::string_view kAmx = "AMX";
constexpr bool HasAmx([[maybe_unused]] int64_t set) {
#if defined(__linux__) && defined(__x86_64__)
  return (set & (HWY_AVX3_DL | HWY_AVX3_SPR)) != 0;
#else
  return false;
#endif
}

// Of a set of Highway's targets.
std::vector<std::string> Names(int64_t set, bool amx) {
  std::vector<std::string> names;
  if (amx) names.emplace_back(kAmx);
  for (const int64_t bit : Bits(set)) names.emplace_back(hwy::TargetName(bit));
  return names;
}

// "AVX3, AVX2, SSE4".
std::string NameList(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

constexpr int64_t kCompiledTargets = HWY_TARGETS;

// Those that the machine can run, and of them those that SetTarget left.
int64_t MachineTargets() { return internal::DetectedTargets() & kCompiledTargets; }
int64_t UsableTargets() { return internal::ChosenTargets() & kCompiledTargets; }
bool MachineTargetsHaveAmx() {
  return HasAmx(MachineTargets()) && internal::MachineHasAmx() && !internal::AmxWasRefused();
}

// Not chosen: the best that there is.
std::atomic<bool> without_amx = false;

}  // namespace

namespace internal {

CoreCount ChooseCores(int online, int affinity, double cgroup_quota) {
  CoreCount cores;
  cores.online = online;
  cores.affinity = affinity;
  cores.cgroup_quota = cgroup_quota;
  cores.usable = std::max(online, 1);
  std::string why = online > 0 ? "all cores of the system" : "the system does not tell its cores";
  if (affinity > 0 && (affinity < online || online <= 0)) {
    cores.usable = affinity;
    why = "the affinity mask has " + std::to_string(affinity) +
          (online > 0 ? " of " + std::to_string(online) + " cores" : " cores");
  }
  if (cgroup_quota > 0 && std::ceil(cgroup_quota) < cores.usable) {
    cores.usable = static_cast<int>(std::ceil(cgroup_quota));
    why = "the cgroup's CPU quota is " + internal::NumberText(cgroup_quota, 4);
  }
  cores.reason = std::to_string(cores.usable) + ": " + why;
  return cores;
}

size_t ParseCacheSize(std::string_view text) {
  size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc()) return 0;
  const char suffix = end == text.data() + text.size() ? '\0' : *end;
  if (suffix == 'K') return size << 10;
  if (suffix == 'M') return size << 20;
  if (suffix == 'G') return size << 30;
  return size;
}

}  // namespace internal

CacheSizes Caches() noexcept { return internal::SystemCaches(); }

CoreCount Cores() {
  // A quota is a fraction: computed under the default modes, and no flag of it for the caller.
  const internal::FpEnvScope modes;
  return internal::ChooseCores(internal::SystemCores(),
                               static_cast<int>(internal::CoreMask::OfThisThread().count()),
                               internal::SystemQuota());
}

int UsableCores() noexcept try { return Cores().usable; } catch (const std::bad_alloc&) {
  return 1;
}

int internal::OnlineCores() noexcept try {
  const FpEnvScope modes;
  return ChooseCores(SystemCores(), 0, SystemQuota()).usable;
} catch (const std::bad_alloc&) {
  return 1;
}

bool internal::UseAmx() {
  return !without_amx.load(std::memory_order_relaxed) && MachineTargetsHaveAmx() && MayUseAmx();
}

std::vector<std::string> CompiledTargets() {
  return Names(kCompiledTargets, HasAmx(kCompiledTargets));
}

std::vector<std::string> SupportedTargets() {
  return Names(MachineTargets(), MachineTargetsHaveAmx());
}

std::string_view internal::ActiveTargetName() {
  if (!without_amx.load(std::memory_order_relaxed) && MachineTargetsHaveAmx()) return kAmx;
  // As the dispatch does: the best that is compiled and not excluded, else the one compiled without
  // any check.
  const int64_t usable = UsableTargets();
  return hwy::TargetName(usable == 0 ? HWY_STATIC_TARGET : usable & -usable);
}

std::string ActiveTarget() { return std::string(internal::ActiveTargetName()); }

Status SetTarget(std::string_view name) {
  return internal::Guarded("the error", [&]() -> Status {
    if (name.empty() || name == "auto" ||
        (name == kAmx && MachineTargetsHaveAmx() && internal::MayUseAmx())) {
      internal::ChooseTargets(0);
      without_amx = false;
      return Status();
    }
    const std::vector<std::string> compiled = CompiledTargets();
    if (std::find(compiled.begin(), compiled.end(), name) == compiled.end()) {
      return InvalidArgument("unknown SIMD target '" + std::string(name) +
                             "'; compiled: " + NameList(compiled) +
                             "; supported by this machine: " + NameList(SupportedTargets()));
    }
    for (const int64_t bit : Bits(MachineTargets())) {
      if (name != hwy::TargetName(bit)) continue;
      internal::ChooseTargets(bit);
      without_amx = true;
      return Status();
    }
    return Status(ErrorCode::kUnsupported, "this machine cannot run the SIMD target " +
                                               std::string(name) +
                                               "; it can run: " + NameList(SupportedTargets()));
  });
}

}  // namespace encore
