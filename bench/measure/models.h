// SPDX-License-Identifier: Apache-2.0
//
// Sizes to measure with: encoder blocks of models in use, batches for them, and what a layer of
// them costs.

#ifndef ENCORE_BENCH_MEASURE_MODELS_H_
#define ENCORE_BENCH_MEASURE_MODELS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "reference/layer_weights.h"

namespace encore::bench {

// Which switches of LayerConfig a model has besides its sizes; engine/nn/families.md.
enum class Block : uint8_t {
  kPostNorm,    // of BERT
  kPreNorm,     // of ViT
  kModernBert,  // no biases, a gate, rotary positions; two of three layers see 64 tokens either
                // side
  kDeberta,     // kPostNorm with relative embeddings of DeBERTa v3
};

struct Model {
  const char* name;
  size_t d_model;
  size_t heads;
  size_t d_ff;
  Activation activation;
  Block block = Block::kPostNorm;

  bool operator==(const Model&) const = default;  // the name by its address
};

// The worked example (encore demo); all-MiniLM-L6; BERT base; BERT large; ViT-B, which makes 197
// tokens of a picture by patches of 16 pixels and 50 by those of 32; ModernBERT-base;
// DeBERTa-v3-base.
inline constexpr Model kExample = {"example", 64, 4, 256, Activation::kRelu};
inline constexpr Model kMiniLm = {"minilm", 384, 12, 1536, Activation::kGelu};
inline constexpr Model kBase = {"base", 768, 12, 3072, Activation::kGelu};
inline constexpr Model kLarge = {"large", 1024, 16, 4096, Activation::kGelu};
inline constexpr Model kVitB = {"vit_b", 768, 12, 3072, Activation::kGelu, Block::kPreNorm};
inline constexpr Model kModernBert = {"modernbert",      768, 12, 1152, Activation::kGelu,
                                      Block::kModernBert};
inline constexpr Model kDeberta = {"deberta_base", 768, 12, 3072, Activation::kGelu,
                                   Block::kDeberta};

struct NamedWorkload {
  std::string name;  // "base_8x128": model, sequences x tokens each
  Model model;
  std::vector<size_t> lengths;  // tokens of each sequence
  // Measured where none is named, with weights in cache, and from memory too.
  bool warm_by_default = false;
  bool cold_by_default = false;
  size_t layers = 1;   // of the model that a call runs
  size_t padding = 0;  // tokens of `lengths` that nobody wants
};

// All that have a name:
//  - example, minilm, base, large and vit_b in the sizes of their daily work;
//  - whole models: all 6 layers of minilm, 12 of base and vit_b, 22 of modernbert, as named;
//  - ragged_64: 64 sequences of base, lengths drawn from a lognormal distribution (median 64, sigma
//    0.8) between 8 and 512, the same ones everywhere; beside it ragged_64_uniform, as many
//    sequences of one length with about the same operations, and ragged_64_padded, which pads all
//    to the longest;
//  - base_1x2048 to base_1x16384, one long sequence;
//  - deberta_base, to be compared with base of the same size.
const std::vector<NamedWorkload>& NamedWorkloads();

// Null if there is none of that name.
const NamedWorkload* FindWorkload(const std::string& name);

size_t Tokens(const NamedWorkload& workload);

// "1x128" for sequences of equal length, else "64 of 8 to 431".
std::string DescribeLengths(const std::vector<size_t>& lengths);

// A stack of so many layers, and which of their tensors there are.
EncoderConfig ConfigOf(const Model& model, size_t layers = 1);
WeightChoices ChoicesOf(const Model& model);

// Bytes of a layer's matrices as products take them; biases and norms count as nothing.
size_t LayerBytes(const Model& model, Precision precision = Precision::kF32);

// Floating point operations of all layers together, as engine/nn/layer_sizes.h counts them.
double StackFlops(const Model& model, const std::vector<size_t>& lengths, size_t layers);
inline double LayerFlops(const Model& model, const std::vector<size_t>& lengths) {
  return StackFlops(model, lengths, 1);
}

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_MODELS_H_
