// SPDX-License-Identifier: Apache-2.0
//
// ENCORE_UNROLL, before a loop of constant count over an array of vectors: the loop must vanish for
// the vectors to live in registers. g++ 12 keeps such arrays in memory otherwise. ENCORE_NO_UNROLL,
// before a loop whose body fills the registers: clang would unroll it by two, hoist loads and
// spill. With ENCORE_FEW_TILES neither says anything: unrolled loops compile for minutes under
// sanitizers.
// ENCORE_32_REGISTERS: whether the SIMD target has 32 vector registers; else it has 16.

#ifndef ENCORE_ENGINE_KERNELS_UNROLL_H_
#define ENCORE_ENGINE_KERNELS_UNROLL_H_

#include "hwy/base.h"

#if defined(ENCORE_FEW_TILES)
#define ENCORE_UNROLL
#define ENCORE_NO_UNROLL
#elif HWY_COMPILER_CLANG
#define ENCORE_UNROLL _Pragma("clang loop unroll(full)")
#define ENCORE_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define ENCORE_UNROLL _Pragma("GCC unroll 16")
#define ENCORE_NO_UNROLL _Pragma("GCC unroll 1")
#endif

#define ENCORE_32_REGISTERS ((HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_ARCH_ARM_A64)

#endif  // ENCORE_ENGINE_KERNELS_UNROLL_H_
