// SPDX-License-Identifier: Apache-2.0
//
// Scales of an encoder's inputs from samples (SmoothQuant, arXiv:2211.10438), and how well its
// products do in int8 with them.

#ifndef ENCORE_TOOLS_ENCORE_CALIBRATION_H_
#define ENCORE_TOOLS_ENCORE_CALIBRATION_H_

#include <cstddef>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
#include "engine/nn/product_observer.h"

namespace encore::tool {

// The input scales of one matrix, and its product's error with them.
struct CalibratedMatrix {
  MatrixOfLayer matrix;
  std::vector<float> input_scale;  // [k]
  double error = 0;                // |y - int8 y|^2 / |y|^2 over the rows that were sampled
};

class Calibration : private internal::ProductObserver {
 public:
  // Makes an encoder of f32. `weights` must outlive this. Throws Failure where it cannot, or where
  // matrices are int8 or inputs have scales already.
  Calibration(const EncoderConfig& config, const EncoderWeights& weights, const Executor& executor);

  const Encoder& encoder() const { return encoder_; }
  // Watches a pass over x [tokens, d_model]. Throws Failure.
  void Add(const Batch& batch, ConstView x);
  size_t tokens() const { return tokens_; }

  // One for each matrix, layer after layer. Throws Failure if an input was NaN or infinite, or
  // nothing was added.
  std::vector<CalibratedMatrix> Finish(const Executor& executor) const;

 private:
  struct Seen {
    std::vector<float> largest;  // [k]: magnitudes
    std::vector<float> rows;     // [some, k]: of all that came, evenly
    size_t count = 0;            // rows seen
    size_t step = 1;             // one of so many is kept
  };
  void Observe(const internal::PackedMatrix& matrix, const float* data, size_t ld,
               size_t rows) override;

  EncoderConfig config_;
  const EncoderWeights& weights_;
  Encoder encoder_;
  std::vector<const internal::PackedMatrix*> matrices_;  // four a layer
  std::vector<Seen> seen_;                               // of each
  size_t tokens_ = 0;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_CALIBRATION_H_
