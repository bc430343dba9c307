// SPDX-License-Identifier: Apache-2.0
//
// Sizes to measure with: encoder blocks of models in use, batches for them, and what a layer of
// them costs. Not here: data (forward.h).

#ifndef ENCORE_BENCH_MEASURE_MODELS_H_
#define ENCORE_BENCH_MEASURE_MODELS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "encore/encoder.h"

namespace encore::bench {

struct Model {
  const char* name;
  size_t d_model;
  size_t heads;
  size_t d_ff;
  Activation activation;
};

// The worked example of the README; all-MiniLM-L6; BERT base; BERT large.
inline constexpr Model kExample = {"example", 64, 4, 256, Activation::kRelu};
inline constexpr Model kMiniLm = {"minilm", 384, 12, 1536, Activation::kGelu};
inline constexpr Model kBase = {"base", 768, 12, 3072, Activation::kGelu};
inline constexpr Model kLarge = {"large", 1024, 16, 4096, Activation::kGelu};

struct NamedWorkload {
  std::string name;  // "base_8x128": model, sequences x tokens each
  Model model;
  std::vector<size_t> lengths;  // tokens of each sequence
  bool is_default;              // measured where none is named
};

// All that have a name:
//  - example, minilm, base and large in the sizes of their daily work;
//  - ragged_64: 64 sequences of base, lengths drawn from a lognormal distribution (median 64, sigma
//    0.8) between 8 and 512, the same ones everywhere; beside it ragged_64_uniform, as many
//    sequences of one length with about the same operations, and ragged_64_padded, all as long as
//    the longest;
//  - base_1x2048 to base_1x16384, one long sequence.
const std::vector<NamedWorkload>& NamedWorkloads();

// Null if there is none of that name.
const NamedWorkload* FindWorkload(const std::string& name);

size_t Tokens(const NamedWorkload& workload);

// "1x128" for sequences of equal length, else "64 of 8 to 431".
std::string DescribeLengths(const std::vector<size_t>& lengths);

// A stack of so many layers.
EncoderConfig ConfigOf(const Model& model, size_t layers = 1);

// Bytes of a layer's four matrices in f32; biases and norms count as nothing.
size_t LayerBytes(const Model& model, Precision precision = Precision::kF32);

// Floating point operations of one layer, as engine/nn/layer_sizes.h counts them.
double LayerFlops(const Model& model, const std::vector<size_t>& lengths);

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_MODELS_H_
