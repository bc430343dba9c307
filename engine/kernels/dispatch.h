// SPDX-License-Identifier: Apache-2.0
//
// ENCORE_DISPATCH: the function of the active SIMD target, out of the table that HWY_EXPORT makes.
// As HWY_DYNAMIC_DISPATCH, but by encore's own choice of targets (engine/base/simd_targets.h),
// which no other user of Highway in the process can change once encore has asked.
//
// Include it after hwy/foreach_target.h and use it under HWY_ONCE.

#ifndef ENCORE_ENGINE_KERNELS_DISPATCH_H_
#define ENCORE_ENGINE_KERNELS_DISPATCH_H_

#include <cstddef>
#include <cstdint>

#include "engine/base/simd_targets.h"
#include "hwy/highway.h"

namespace encore::inline v0_1::internal {

// The active target's entry in a Highway table of functions. Entry 0 is Highway's initialisation
// and never chosen. The targets follow, best first (better ones have lower bits), and last the one
// for machines that have none of them. A file that was not compiled for the best chosen target
// uses the next best that it was compiled for.
template <int64_t kCompiledTargets>
size_t DispatchIndex() {
  const int64_t chosen = ChosenTargets();
  const int64_t from_best = -(chosen & -chosen);  // the best chosen target's bit and those above
  const int64_t usable = kCompiledTargets & DetectedTargets() & from_best;
  return hwy::Num0BitsBelowLS1Bit_Nonzero64(
      static_cast<uint64_t>(HWY_CHOSEN_TARGET_SHIFT(usable) | HWY_CHOSEN_TARGET_MASK_SCALAR));
}

}  // namespace encore::internal

#if HWY_IDE || (HWY_TARGETS & (HWY_TARGETS - 1)) == 0  // a single target: Highway makes no table
#define ENCORE_DISPATCH(FUNCTION) HWY_STATIC_DISPATCH(FUNCTION)
#else
#define ENCORE_DISPATCH(FUNCTION) \
  (*HWY_DISPATCH_TABLE(FUNCTION)[::encore::internal::DispatchIndex<HWY_TARGETS>()])
#endif

#endif  // ENCORE_ENGINE_KERNELS_DISPATCH_H_
