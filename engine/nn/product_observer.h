// SPDX-License-Identifier: Apache-2.0
//
// Observes the inputs of an encoder's products during a pass, for calibration, and the end of each
// step, for measuring (bench/bench_layers.cc).

#ifndef ENCORE_ENGINE_NN_PRODUCT_OBSERVER_H_
#define ENCORE_ENGINE_NN_PRODUCT_OBSERVER_H_

#include <cstddef>
#include <vector>

#include "encore/encoder.h"
#include "engine/nn/packed_layer.h"

namespace encore::inline v0_1::internal {

struct RowStep;

class ProductObserver {
 public:
  virtual ~ProductObserver() = default;
  // data [rows, ld]: inputs of a product with this matrix, before they are rounded to anything. On
  // one thread, each row of the batch is seen once for each product.
  virtual void Observe(const PackedMatrix& matrix, const float* data, size_t ld, size_t rows) = 0;
  // A step of a layer has been run for some rows. Null: their part of attention, beginning with
  // norms and positions of queries and keys.
  virtual void AfterStep(const RowStep* /*step*/) {}
};

// Access beyond the public interface of an encoder.
struct EncoderAccess {
  // Encoder::Forward on the calling thread alone.
  static Status Forward(const Encoder& encoder, const Batch& batch, ConstView x, MutableView y,
                        const Workspace& workspace, ProductObserver* observer);
  static const std::vector<PackedLayer>& Layers(const Encoder& encoder);
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_PRODUCT_OBSERVER_H_
