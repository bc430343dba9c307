// SPDX-License-Identifier: Apache-2.0
//
// For files whose kernels are the same on every AVX-512 target: they are compiled for AVX3 alone,
// and ENCORE_DISPATCH (dispatch.h) takes those on better targets too. Include it before any header
// of Highway. The list comes from tools/cmake/EncoreCompileOptions.cmake.

#ifndef ENCORE_ENGINE_KERNELS_ONE_AVX3_H_
#define ENCORE_ENGINE_KERNELS_ONE_AVX3_H_

#ifdef ENCORE_DISABLED_BESIDE_AVX3
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS ENCORE_DISABLED_BESIDE_AVX3
#endif

#endif  // ENCORE_ENGINE_KERNELS_ONE_AVX3_H_
