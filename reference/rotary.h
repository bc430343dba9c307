// SPDX-License-Identifier: Apache-2.0
//
// Rotary positions in double precision (Su et al. 2021, arXiv:2104.09864).

#ifndef ENCORE_REFERENCE_ROTARY_H_
#define ENCORE_REFERENCE_ROTARY_H_

#include <cmath>
#include <cstddef>
#include <span>

#include "reference/number.h"

namespace encore::reference {

// Turns pair i of x by position * inverse_frequencies[i]: (x[i], x[i + pairs]), or (x[2 i],
// x[2 i + 1]) where interleaved.
template <typename T>
void Rotate(T* x, bool interleaved, double position, std::span<const double> inverse_frequencies,
            double magnitude = 1) {
  const size_t pairs = inverse_frequencies.size();
  for (size_t i = 0; i < pairs; ++i) {
    const double angle = position * inverse_frequencies[i];
    const T cos = Apply(T(angle), magnitude * std::cos(angle), 0, 0);  // rounded once
    const T sin = Apply(T(angle), magnitude * std::sin(angle), 0, 0);
    T& a = x[interleaved ? 2 * i : i];
    T& b = x[interleaved ? 2 * i + 1 : i + pairs];
    const T turned = a * cos - b * sin;
    b = b * cos + a * sin;
    a = turned;
  }
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_ROTARY_H_
