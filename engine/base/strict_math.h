// SPDX-License-Identifier: Apache-2.0
//
// Included by what computes the published bits: refuses to be compiled with options that change
// what floating-point operations give. GCC tells of each such option by a macro, Clang of
// -ffast-math and -ffinite-math-only alone. The build turns a host's options off
// (tools/cmake/EncoreCompileOptions.cmake); this is for builds of another kind.

#ifndef ENCORE_ENGINE_BASE_STRICT_MATH_H_
#define ENCORE_ENGINE_BASE_STRICT_MATH_H_

#if defined(__FAST_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__ASSOCIATIVE_MATH__) || \
    defined(__NO_SIGNED_ZEROS__) || defined(_M_FP_FAST) ||                                     \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0)
#error \
    "encore gives the same bits everywhere only without -ffast-math, -Ofast and their parts: \
compile its own sources with -fno-fast-math (MSVC: /fp:precise)"
#endif

#endif  // ENCORE_ENGINE_BASE_STRICT_MATH_H_
