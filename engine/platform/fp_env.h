// SPDX-License-Identifier: Apache-2.0
//
// FpEnvScope: the floating-point modes that every result of this library is computed under, for the
// time of a scope. The contract of equal bits needs it: threads of a pool do not inherit the
// caller's modes, so a caller that flushes denormals or rounds upward would otherwise get other
// bits from thread 0 than from the rest.

#ifndef ENCORE_ENGINE_PLATFORM_FP_ENV_H_
#define ENCORE_ENGINE_PLATFORM_FP_ENV_H_

#include <cstdint>

#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace encore::inline v0_1::internal {

// Sets round to nearest even, denormals kept, no traps; the destructor puts back what it found,
// sticky exception flags included, which x86 keeps beside the modes and AArch64 in a register of
// their own. Work inside must sit behind a call that the compiler cannot see through (thread_team's
// function pointers, another file's function), since compilers move arithmetic across changes of
// these registers.
class FpEnvScope {
 public:
  FpEnvScope(const FpEnvScope&) = delete;
  FpEnvScope& operator=(const FpEnvScope&) = delete;

#if defined(__SSE__) || defined(_M_X64)
  // MXCSR at power-up: all six exceptions masked (bits 7-12), nearest, FTZ (bit 15) and DAZ (bit 6)
  // off.
  static constexpr uint32_t kDefault = 0x1F80;
  FpEnvScope() : saved_(_mm_getcsr()) {
    if (saved_ != kDefault) _mm_setcsr(kDefault);
  }
  ~FpEnvScope() { _mm_setcsr(saved_); }

 private:
  uint32_t saved_;
#elif defined(__aarch64__)
  // FPCR of zero: nearest, no flush (FZ, FZ16), NaNs propagate (DN off), no traps, no alternative
  // half precision. It is written only where that changes it. FPSR holds the flags, which do not
  // matter to what is computed: it is read once and written once.
  FpEnvScope() {
    asm volatile("mrs %0, fpcr" : "=r"(modes_));
    asm volatile("mrs %0, fpsr" : "=r"(flags_));
    if (modes_ != 0) asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
  }
  ~FpEnvScope() {
    if (modes_ != 0) asm volatile("msr fpcr, %0" : : "r"(modes_));
    asm volatile("msr fpsr, %0" : : "r"(flags_));
  }

 private:
  uint64_t modes_;
  uint64_t flags_;
#else
  FpEnvScope() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FpEnvScope() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_FP_ENV_H_
