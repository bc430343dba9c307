// SPDX-License-Identifier: Apache-2.0
//
// The kernels that are quick to compile, of every SIMD target, in one file: reading Highway once
// for each target takes the compiler longer than any of them.

#include "engine/base/strict_math.h"
#include "engine/kernels/fewer_avx3.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/small_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "engine/kernels/byte_sums-inl.h"
#include "engine/kernels/elementwise-inl.h"
#include "engine/kernels/int4_groups-inl.h"
#include "engine/kernels/norm-inl.h"
#include "engine/kernels/relative-inl.h"
#include "engine/kernels/rotary-inl.h"
