// SPDX-License-Identifier: Apache-2.0
//
// For files whose kernels need no more of AVX-512 than its product of bytes: they are compiled for
// AVX3 and AVX3_DL, and ENCORE_DISPATCH (dispatch.h) takes the latter on better targets too.
// Include it before any header of Highway. The list comes from
// tools/cmake/EncoreCompileOptions.cmake.

#ifndef ENCORE_ENGINE_KERNELS_TWO_AVX3_H_
#define ENCORE_ENGINE_KERNELS_TWO_AVX3_H_

#ifdef ENCORE_DISABLED_BESIDE_AVX3
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (ENCORE_DISABLED_BESIDE_AVX3 & ~HWY_AVX3_DL)
#endif

#endif  // ENCORE_ENGINE_KERNELS_TWO_AVX3_H_
