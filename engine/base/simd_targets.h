// SPDX-License-Identifier: Apache-2.0
//
// Which SIMD targets this copy of encore may use, as a set of Highway's bits (HWY_AVX2 ...).
// Highway's own choice belongs to the whole process, where another user of Highway, or another copy
// of encore in a shared library, may change it. encore asks Highway once, at first need: targets
// that others have disabled by then are absent, later changes have no effect.

#ifndef ENCORE_ENGINE_BASE_SIMD_TARGETS_H_
#define ENCORE_ENGINE_BASE_SIMD_TARGETS_H_

#include <cstdint>

namespace encore::inline v0_1::internal {

// What the machine can run, the same ever after the first call.
int64_t DetectedTargets();

// What the dispatch may choose from: what was last chosen, at first all of the machine's.
int64_t ChosenTargets();
void ChooseTargets(int64_t targets);  // 0: all of the machine's

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_SIMD_TARGETS_H_
