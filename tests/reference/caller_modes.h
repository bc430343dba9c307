// SPDX-License-Identifier: Apache-2.0
//
// The floating-point modes of the calling thread (MXCSR, FPCR), for checks that a call neither
// heeds nor changes them. Where the machine is neither x86 nor AArch64 there are none to try.

#ifndef ENCORE_TESTS_REFERENCE_CALLER_MODES_H_
#define ENCORE_TESTS_REFERENCE_CALLER_MODES_H_

#include <cstdint>

#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace encore::reference {

#if defined(__SSE__) || defined(_M_X64)
inline constexpr bool kHaveCallerModes = true;
// All exceptions masked, flush to zero (bit 15), denormals are zeros (6), upward (14).
inline constexpr uint64_t kFlushAndRoundUp = 0x1F80 | 0x8000 | 0x0040 | 0x4000;
// Toward zero (13 and 14), nothing flushed.
inline constexpr uint64_t kTowardZero = 0x1F80 | 0x6000;
// What is no mode: the sticky flags of exceptions.
inline constexpr uint64_t kStickyFlags = 0x3F;
inline uint64_t CallerModes() { return _mm_getcsr(); }
inline void SetCallerModes(uint64_t modes) { _mm_setcsr(static_cast<unsigned>(modes)); }
#elif defined(__aarch64__)
inline constexpr bool kHaveCallerModes = true;
// Flush to zero (bit 24), upward (22).
inline constexpr uint64_t kFlushAndRoundUp = uint64_t{1} << 24 | uint64_t{1} << 22;
// Toward zero (22 and 23).
inline constexpr uint64_t kTowardZero = uint64_t{3} << 22;
inline constexpr uint64_t kStickyFlags = 0;  // they are in FPSR
inline uint64_t CallerModes() {
  uint64_t modes;
  asm volatile("mrs %0, fpcr" : "=r"(modes));
  return modes;
}
inline void SetCallerModes(uint64_t modes) { asm volatile("msr fpcr, %0" : : "r"(modes)); }
#else
inline constexpr bool kHaveCallerModes = false;
inline constexpr uint64_t kFlushAndRoundUp = 0;
inline constexpr uint64_t kTowardZero = 0;
inline constexpr uint64_t kStickyFlags = 0;
inline uint64_t CallerModes() { return 0; }
inline void SetCallerModes(uint64_t) {}
#endif

}  // namespace encore::reference

#endif  // ENCORE_TESTS_REFERENCE_CALLER_MODES_H_
