// SPDX-License-Identifier: Apache-2.0
//
// The set of SIMD targets in use, in two words of memory, and the question to Highway.

#include "engine/base/simd_targets.h"

#include <atomic>

#include "hwy/targets.h"
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace encore::inline v0_1::internal {
namespace {

// Of processors with NEON: whether they multiply bytes (SDOT), as all of Apple's for macOS do.
bool HasDotProducts() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kAsimdDp = 1ul << 20;  // HWCAP_ASIMDDP, which old headers lack
  return (getauxval(AT_HWCAP) & kAsimdDp) != 0;
#elif defined(__APPLE__)
  return true;
#else
  return false;
#endif
}

std::atomic<int64_t> machine{0};  // 0: not asked yet
std::atomic<int64_t> chosen{0};   // 0: all of the machine's

int64_t Detect() {
  const int64_t targets = hwy::SupportedTargets();
  // Highway expects its callers to remove the targets that another user of it has disabled.
  hwy::GetChosenTarget().Update(targets);
  // encore's NEON multiplies bytes where NEON_WITHOUT_AES does not. That is all between the two.
  const int64_t unusable = HasDotProducts() ? 0 : HWY_NEON & ~HWY_STATIC_TARGET;
  return targets & ~unusable;
}

}  // namespace

int64_t DetectedTargets() {
  if (const int64_t known = machine.load(std::memory_order_relaxed); known != 0) return known;
  int64_t first = 0;
  const int64_t found = Detect();
  // The first thread's answer is everybody's.
  return machine.compare_exchange_strong(first, found) ? found : first;
}

int64_t ChosenTargets() {
  const int64_t targets = chosen.load(std::memory_order_relaxed);
  return targets != 0 ? targets : DetectedTargets();
}

void ChooseTargets(int64_t targets) { chosen.store(targets, std::memory_order_relaxed); }

}  // namespace encore::internal
