// SPDX-License-Identifier: Apache-2.0
//
// One encoder block with drawn weights, run and checked against the double-precision reference:
// what `encore demo` and the block case of `encore attend` share; and how far results are from what
// is exact.

#ifndef ENCORE_TOOLS_ENCORE_SEEDED_BLOCK_H_
#define ENCORE_TOOLS_ENCORE_SEEDED_BLOCK_H_

#include <span>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/tensor.h"
#include "tools/encore/definitions.h"
#include "tools/encore/numpy_random.h"

namespace encore::tool {

struct NamedWeight {
  std::string name;  // as in the worked example: "self_attn.in_proj_weight", "ff.0.weight" ...
  Tensor tensor;     // f32
};

struct SeededBlock {
  EncoderConfig config;
  std::vector<NamedWeight> weights;  // the twelve of a block, in the order of torch_names there
  EncoderWeights views;              // of the memory of `weights`
};

// Draws the weights one after another: matrices and biases uniform in +-1 / sqrt(inputs), as
// torch.nn.Linear has them, the LayerNorms' weights in [0.9, 1.1) and their biases in [-0.1, 0.1).
SeededBlock DrawBlock(const EncoderConfig& config, NumpyRandom& random);

// Uniform in +-sqrt(3), so of variance 1.
Tensor DrawInput(const Shape& shape, NumpyRandom& random);

struct BlockRun {
  Tensor y;          // [B, S, D]
  Tensor attention;  // [B, H, S, S]
};

// x is [B, S, D]. Throws Failure.
BlockRun RunBlock(const Encoder& encoder, const Tensor& x, const Executor& executor);

// How far results are from the exact ones, each of which has a bound of its own.
struct Deviation {
  double largest = 0;         // |found - exact|
  double bound = 0;           // of the element where that is
  double share_of_bound = 0;  // the largest |found - exact| / bound of all elements
  bool ok() const { return share_of_bound <= 1; }  // false for NaN anywhere

  void Compare(double found, double exact, double allowed);
  void Compare(std::span<const float> found, const reference::Matrix<reference::Rounded>& exact);
  void Compare(std::span<const float> found, const reference::Bounded& exact);
};

// Of results in f32 from the reference in double precision, which gets the same weights and x. The
// bounds are derived from the rounding of every step that leads to an element.
struct BlockCheck {
  Deviation y;
  Deviation attention;
  bool ok() const { return y.ok() && attention.ok(); }
};
BlockCheck CheckBlock(const SeededBlock& block, const Tensor& x, const BlockRun& run);

// "largest error 6.1e-07, bound 4.0e-06; at most 21 % of a bound".
std::string Describe(const Deviation& deviation);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_SEEDED_BLOCK_H_
