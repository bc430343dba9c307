// SPDX-License-Identifier: Apache-2.0
//
// For files whose kernels are the same on several AVX-512 targets: those named by
// ENCORE_SAME_ON_AVX3, if it is not defined all but AVX3, are left out, and ENCORE_DISPATCH
// (dispatch.h) uses the next best there. Include it before any header of Highway. The list of
// targets comes from tools/cmake/EncoreCompileOptions.cmake.

#ifndef ENCORE_ENGINE_KERNELS_FEWER_AVX3_H_
#define ENCORE_ENGINE_KERNELS_FEWER_AVX3_H_

#ifndef ENCORE_SAME_ON_AVX3
#define ENCORE_SAME_ON_AVX3 (HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR)
#endif

#ifdef ENCORE_DISABLED_TARGETS
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (ENCORE_DISABLED_TARGETS | ENCORE_SAME_ON_AVX3)
#endif

#endif  // ENCORE_ENGINE_KERNELS_FEWER_AVX3_H_
