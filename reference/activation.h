// SPDX-License-Identifier: Apache-2.0
//
// The activations of an encoder block in double precision: those of elementwise.h by their
// enumerator, and how far a block may take them from it.

#ifndef ENCORE_REFERENCE_ACTIVATION_H_
#define ENCORE_REFERENCE_ACTIVATION_H_

#include <cmath>

#include "encore/encoder.h"
#include "reference/number.h"
#include "reference/tile_accuracy.h"

namespace encore::reference {

inline double Activate(Activation activation, double x) {
  for (const TileAccuracy& row : kTileAccuracies) {
    if (row.activation == activation) return row.exact(x);
  }
  return x;
}

// Within a block an activation may be off by half a spacing at |x|, which is u |x|, besides its own
// 3 ulp. The slope comes from a difference.
template <typename T>
T Activate(Activation activation, T x) {
  const double v = Value(x);
  const double y = Activate(activation, v);
  const double h = 1e-5 * (1 + std::fabs(v));
  const double slope = (Activate(activation, v + h) - Activate(activation, v - h)) / (2 * h);
  return Apply(x, y, slope, Rounded::kUnit * (std::fabs(v) + 6 * std::fabs(y)));
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_ACTIVATION_H_
