// SPDX-License-Identifier: Apache-2.0
//
// Included by all code that computes published bits: refuses options that change the results of
// floating-point operations. GCC has a macro for each such option, Clang for -ffast-math and
// -ffinite-math-only alone. The build turns a host's options off
// (tools/cmake/EncoreCompileOptions.cmake); this is for other builds.

#ifndef ENCORE_ENGINE_BASE_STRICT_MATH_H_
#define ENCORE_ENGINE_BASE_STRICT_MATH_H_

#if defined(__FAST_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__ASSOCIATIVE_MATH__) || \
    defined(__NO_SIGNED_ZEROS__) || defined(_M_FP_FAST) ||                                     \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0)
#error \
    "encore gives the same bits everywhere only without -ffast-math, -Ofast and their parts: \
compile its own sources with -fno-fast-math (MSVC: /fp:precise)"
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#pragma fp_contract(off)  // /fp:precise fuses a * b + c before Visual Studio 2022
#endif

#endif  // ENCORE_ENGINE_BASE_STRICT_MATH_H_
