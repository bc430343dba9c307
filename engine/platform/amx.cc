// SPDX-License-Identifier: Apache-2.0
//
// The questions of amx.h, as Linux and the processor answer them.

#include "engine/platform/amx.h"

#include <atomic>
#include <cstdint>

#if defined(__linux__) && defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/platform/once.h"
#endif

namespace encore::inline v0_1::internal {

#if defined(__linux__) && defined(__x86_64__)
namespace {

// Of asm/prctl.h, which older systems have without them.
constexpr long kGetSupported = 0x1021;
constexpr long kRequestPermission = 0x1023;
constexpr long kTileData = 18;                           // the state's number
constexpr uint64_t kTileStates = uint64_t{3} << 17;      // of XCR0: configuration and data
constexpr unsigned kSystemSavesStates = 1u << 27;        // of CPUID 1, ecx
constexpr unsigned kTilesAndInt8 = 1u << 24 | 1u << 25;  // of CPUID 7, edx
constexpr unsigned kBf16 = 1u << 22;

std::atomic<bool> refused = false;

uint64_t EnabledStates() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

struct Amx {
  bool int8 = false;
  bool bf16 = false;
};

Amx FindAmx() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kSystemSavesStates) == 0) return {};
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return {};
  if ((d & kTilesAndInt8) != kTilesAndInt8) return {};
  if ((EnabledStates() & kTileStates) != kTileStates) return {};
  uint64_t supported = 0;
  const bool known = syscall(SYS_arch_prctl, kGetSupported, &supported) == 0;
  const bool saved = known && (supported >> kTileData & 1) != 0;
  return {.int8 = saved, .bf16 = saved && (d & kBf16) != 0};
}

const Amx& MachineAmx() {
  static constinit Once<Amx> amx;
  return amx.Get(FindAmx);
}

}  // namespace

bool MachineHasAmx() { return MachineAmx().int8; }
bool MachineHasAmxBf16() { return MachineAmx().bf16; }

bool MayUseAmx() {
  static constinit Once<bool> may;
  return may.Get([] {
    if (!MachineHasAmx()) return false;
    const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
    refused.store(!granted, std::memory_order_relaxed);
    return granted;
  });
}

bool AmxWasRefused() { return refused.load(std::memory_order_relaxed); }

#else

bool MachineHasAmx() { return false; }
bool MachineHasAmxBf16() { return false; }
bool MayUseAmx() { return false; }
bool AmxWasRefused() { return false; }

#endif

}  // namespace encore::internal
