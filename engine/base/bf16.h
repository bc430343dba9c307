// SPDX-License-Identifier: Apache-2.0
//
// bf16 and f16 numbers as their 16 bits, to and from float: the same bits on every machine and in
// every rounding mode; F16ToF32 only in modes that keep denormals.

#ifndef ENCORE_ENGINE_BASE_BF16_H_
#define ENCORE_ENGINE_BASE_BF16_H_

#include <bit>
#include <cstdint>

namespace encore::inline v0_1::internal {

// bf16: 1 sign, 8 exponent, 7 mantissa bits: the upper half of a float. Exact; NaN payloads are
// kept.
constexpr float Bf16ToF32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// To nearest, ties to even; beyond the largest finite bf16 to infinity. A NaN becomes quiet and
// keeps its upper payload.
constexpr uint16_t F32ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  // 0x7FFF plus the last kept bit carries exactly when the dropped half is above a tie, or at a tie
  // with an odd result.
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// f16 (IEEE binary16): 1 sign, 5 exponent (bias 15), 10 mantissa bits. Exact in every rounding mode
// that keeps denormals; NaN payloads are kept.
constexpr float F16ToF32(uint16_t half) {
  // The sign, and 13 bits lower exponent and mantissa, where a float has them. Without branches, so
  // that loops become vectors.
  const uint32_t shifted =
      static_cast<uint32_t>(static_cast<int32_t>(uint32_t{half} << 16) >> 3) & 0x8FFFE000u;
  // 112 is the difference of the two biases, 127 - 15. The product is exact, of subnormals too.
  const auto value = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted) * 0x1p112f);
  const uint32_t infinite = (shifted & 0x0F800000u) == 0x0F800000u ? 0x7F800000u : 0;
  return std::bit_cast<float>(value | infinite);
}

// To nearest, ties to even; from 65520 on to infinity. A NaN becomes quiet and keeps its upper
// payload.
constexpr uint16_t F32ToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  }
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 65536 and beyond
  if (magnitude >=
      0x38800000u) {  // 2^-14 and beyond: a normal f16, or infinity by the carry from 65520 on
    const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
  }
  // The result counts units of 2^-24. The float is significand * 2^(exponent - 150), so that many
  // bits drop out:
  const uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return static_cast<uint16_t>(sign);  // below 2^-25, half a unit
  const uint32_t shift = 126u - exponent;                  // 14 .. 24
  const uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
  const uint32_t rounded = significand + ((1u << (shift - 1)) - 1u) + ((significand >> shift) & 1u);
  return static_cast<uint16_t>(sign | (rounded >> shift));
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_BF16_H_
