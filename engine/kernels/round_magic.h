// SPDX-License-Identifier: Apache-2.0
//
// Rounding by an addition.

#ifndef ENCORE_ENGINE_KERNELS_ROUND_MAGIC_H_
#define ENCORE_ENGINE_KERNELS_ROUND_MAGIC_H_

namespace encore::inline v0_1::internal {

// Adding 1.5 * 2^23 rounds a float below 2^22 in magnitude to an integer (to nearest even), which
// the low bits of the sum then hold. 1.5 * 2^20 does so in eighths.
inline constexpr float kRoundMagic = 0x1.8p23f;
inline constexpr float kEighthMagic = 0x1.8p20f;

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_KERNELS_ROUND_MAGIC_H_
