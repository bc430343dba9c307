// SPDX-License-Identifier: Apache-2.0
//
// Floats that the elementwise functions find hard: where trying all of them has found the largest
// errors, now and with earlier formulas, the ends of the ranges, special values. One list for the
// tests that sample and for `encore verify`, whose JSON names the worst floats that it found.

#ifndef ENCORE_REFERENCE_HARD_FLOATS_H_
#define ENCORE_REFERENCE_HARD_FLOATS_H_

#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

namespace encore::reference {

inline constexpr float kHardFloats[] = {
    // Special values and the ends of f32.
    0.0f,
    -0.0f,
    std::numeric_limits<float>::infinity(),
    -std::numeric_limits<float>::infinity(),
    std::numeric_limits<float>::max(),
    std::numeric_limits<float>::lowest(),
    std::numeric_limits<float>::min(),
    -std::numeric_limits<float>::min(),
    std::numeric_limits<float>::denorm_min(),
    -std::numeric_limits<float>::denorm_min(),
    // Where results become inf, subnormal, 0, 1 or x.
    88.7228317f,
    88.7228394f,
    -87.3365479f,
    -103.97f,
    -103.972084f,
    -103.98f,
    9.01091385f,
    -14.2f,
    -10.6f,
    -106.0f,
    // The largest errors, of earlier formulas too.
    5.20192909f,
    37.7776642f,
    -0.973712862f,
    -0.879400551f,
    -2.1934309f,
    -1.84611177f,
    15.5966196f,
    4.50664568f,
    5.09894657f,
    0.150558487f,
    -1.84351015f,
    -2.19838095f,
    -22.5283146f,
    -89.0723114f,
    -5.47580481f,
    -5.64569759f,
    0.487120152f,
    -0.488406062f,
    0.487141848f,
    0.247350872f,
    0.249449313f,
    0.0155124879f,
    0.0038683936f,
    0.00778504554f,
    -87.3871078f,
    -87.3373566f,
    3.3421576f,
    -59.0404167f,
    8.79760742f,
    -0.152020559f,
    -2.19522786f,
    -5.21653032f,
    -2.75605059f,
    -5.64511776f,
    -9.61044693f,
    -9.47977161f,
    -5.19955826f,
    -80.6673126f,
    -38.4705963f,
    -5.20774746f,
    // Where an earlier exp broke the order of its results, and more of the largest errors.
    -0.0309927203f,
    -0.0309927221f,
    -0.030992724f,
    -87.6313934f,
    -56.2676201f,
    3.33930635f,
    -5.09894657f,
    -0.150558487f,
    -1.86009395f,
    -0.810002506f,
    -4.80737925f,
    -2.7589581f,
    -8.95366955f,
    -81.4459686f,
    -5.22293377f,
    -37.784832f,
    0.24924764f,
    0.122713469f,
    0.249883667f,
    0.122755699f,
    0.46518001f,
    0.124247327f,
    0.467173517f,
    0.122856177f,
    0.0624743514f,
    0.0311564915f,
    0.00390093843f,
    0.0156098958f,
    // Softmax's exponential, at the scales of head sizes.
    -1.09776175f,
    -2.48602986f,
    -0.401692092f,
    -1.09729278f,
    -0.144079089f,
    -0.333440065f,
    -0.245041341f,
    -0.816467702f,
    -0.332986951f,
    -1.13756227f,
    -8.782094f,
    -19.8882389f,
    -3.21353674f,
    -8.77834225f,
    -1.15263271f,
    -0.519533336f,
    -0.498086661f,
    -0.522521019f,
    -1.30332577f,
    -0.495476782f,
    -3.97705436f,
    -0.575093508f,
    -1.4256438f,
    -0.575950027f,
    -0.270596266f,
    -0.666880131f,
    -0.490082681f,
    -1.6329354f,
    -0.665973902f,
    -2.27512455f,
    -0.40537408f,
    -0.819717288f,
    -3.24299264f,
    -1.29216218f,
    -1.4213866f,
    -1.63943458f,
    -0.461577952f,
    -0.829146206f,
    -3.21093202f,
    -1.31019282f,
    -1.39989758f,
    -1.66589999f,
    -86.6708603f,
    -490.272278f,
    -693.366882f,
    -774.969116f,
    -848.933289f,
    -980.544556f,
};

// NaNs of both signs and kinds, with payloads small and large.
inline constexpr uint32_t kNanBits[] = {0x7FC00000u, 0xFFC00000u, 0x7FC00001u, 0x7FFFFFFFu,
                                        0xFFFFFFFFu, 0x7F800001u, 0x7FA00000u, 0xFFA00000u};

// All of the above, and a grid of count + 1 points over [-14.5, 14.5], where functions bend.
inline std::vector<float> HardFloats(int count) {
  std::vector<float> x(std::begin(kHardFloats), std::end(kHardFloats));
  for (const uint32_t bits : kNanBits) x.push_back(std::bit_cast<float>(bits));
  for (int i = 0; i <= count; ++i) {
    x.push_back(static_cast<float>(29.0 * i / count - 14.5));
  }
  return x;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_HARD_FLOATS_H_
