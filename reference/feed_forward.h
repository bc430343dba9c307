// SPDX-License-Identifier: Apache-2.0
//
// The feed-forward network of an encoder layer in double precision, plain or gated.

#ifndef ENCORE_REFERENCE_FEED_FORWARD_H_
#define ENCORE_REFERENCE_FEED_FORWARD_H_

#include <cstddef>

#include "encore/encoder.h"
#include "reference/activation.h"
#include "reference/linear.h"

namespace encore::reference {

// linear2(activation(linear1 x)), or linear2(activation(gate x) * up x).
template <typename T>
Matrix<T> FeedForward(const LayerConfig& c, const EncoderLayerWeights& w, const Matrix<T>& x) {
  Matrix<T> gate, up;
  if (c.gate == Gate::kNone) {
    gate = Linear(x, w.linear1.weight, w.linear1.bias);
  } else if (w.linear1.weight.empty()) {
    gate = Linear(x, w.gate_proj.weight, w.gate_proj.bias);
    up = Linear(x, w.up_proj.weight, w.up_proj.bias);
  } else {
    const Matrix<T> both = Linear(x, w.linear1.weight, w.linear1.bias);
    const bool first = c.gate == Gate::kFirstHalf;
    gate = Columns(both, first ? 0 : c.d_ff, c.d_ff);
    up = Columns(both, first ? c.d_ff : 0, c.d_ff);
  }
  for (size_t i = 0; i < gate.data.size(); ++i) {
    T& inner = gate.data[i];
    inner = Activate(c.activation, inner);
    if (c.gate != Gate::kNone) inner = inner * up.data[i];
  }
  return Linear(gate, w.linear2.weight, w.linear2.bias, w.layer_scale2);
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_FEED_FORWARD_H_
