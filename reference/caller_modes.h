// SPDX-License-Identifier: Apache-2.0
//
// The floating-point state of the calling thread, for checks that a call neither heeds nor changes
// it: the modes (rounding, flushing, traps) and the sticky flags of exceptions, in one number. On
// x86 that is MXCSR; on AArch64 FPCR, and above it FPSR. On other machines there is none to try.

#ifndef ENCORE_REFERENCE_CALLER_MODES_H_
#define ENCORE_REFERENCE_CALLER_MODES_H_

#include <cstdint>

#include "encore/executor.h"

#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace encore::reference {

#if defined(__SSE__) || defined(_M_X64)
inline constexpr bool kHaveCallerModes = true;
// To nearest, nothing flushed, all exceptions masked (bits 7 to 12).
inline constexpr uint64_t kDefaultModes = 0x1F80;
// Flush to zero (bit 15), denormals are zeros (6), upward (14).
inline constexpr uint64_t kFlushAndRoundUp = kDefaultModes | 0x8000 | 0x0040 | 0x4000;
// Toward zero (13 and 14), nothing flushed.
inline constexpr uint64_t kTowardZero = kDefaultModes | 0x6000;
// No exception masked.
inline constexpr bool kHaveTraps = true;
inline constexpr uint64_t kAllTraps = 0;
// What is no mode: the sticky flags, and the one of a division by zero.
inline constexpr uint64_t kStickyFlags = 0x3F;
inline constexpr uint64_t kDividedByZero = 0x04;
inline uint64_t CallerState() { return _mm_getcsr(); }
inline void SetCallerState(uint64_t state) { _mm_setcsr(static_cast<unsigned>(state)); }
#elif defined(__aarch64__)
inline constexpr bool kHaveCallerModes = true;
inline constexpr uint64_t kDefaultModes = 0;
// Flush to zero (bit 24), upward (22).
inline constexpr uint64_t kFlushAndRoundUp = uint64_t{1} << 24 | uint64_t{1} << 22;
// Toward zero (22 and 23).
inline constexpr uint64_t kTowardZero = uint64_t{3} << 22;
// Few cores have traps at all.
inline constexpr bool kHaveTraps = false;
inline constexpr uint64_t kAllTraps = 0;
// All of FPSR, saturation (QC) included; a division by zero is its bit 1.
inline constexpr uint64_t kStickyFlags = uint64_t{0xFFFFFFFF} << 32;
inline constexpr uint64_t kDividedByZero = uint64_t{2} << 32;
inline uint64_t CallerState() {
  uint64_t modes, flags;
  asm volatile("mrs %0, fpcr" : "=r"(modes));
  asm volatile("mrs %0, fpsr" : "=r"(flags));
  return modes | flags << 32;
}
inline void SetCallerState(uint64_t state) {
  asm volatile("msr fpcr, %0" : : "r"(state & 0xFFFFFFFF));
  asm volatile("msr fpsr, %0" : : "r"(state >> 32));
}
#else
inline constexpr bool kHaveCallerModes = false;
inline constexpr uint64_t kDefaultModes = 0;
inline constexpr uint64_t kFlushAndRoundUp = 0;
inline constexpr uint64_t kTowardZero = 0;
inline constexpr bool kHaveTraps = false;
inline constexpr uint64_t kAllTraps = 0;
inline constexpr uint64_t kStickyFlags = 0;
inline constexpr uint64_t kDividedByZero = 0;
inline uint64_t CallerState() { return 0; }
inline void SetCallerState(uint64_t) {}
#endif

// The part of the caller's state that must be as before after a call: all of it, but for the sticky
// flags where OpenMP's runtime or a host's pool runs code of its own on the caller's thread.
inline uint64_t KeptState(const Executor& executor) {
  const bool ours =
      executor.kind() == Executor::Kind::kInline || executor.kind() == Executor::Kind::kPool;
  return ours ? ~uint64_t{0} : ~kStickyFlags;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_CALLER_MODES_H_
