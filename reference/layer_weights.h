// SPDX-License-Identifier: Apache-2.0
//
// The weights of a configuration, tensor after tensor of the engine's table (nn/layer_tensors.h),
// for everything that draws weights.

#ifndef ENCORE_REFERENCE_LAYER_WEIGHTS_H_
#define ENCORE_REFERENCE_LAYER_WEIGHTS_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "encore/encoder.h"

namespace encore {

// Which of the tensors that a layer may have are given, and how.
struct WeightChoices {
  bool biases = true;
  bool norm_weights = true;
  bool fused_qkv = true;    // in_proj, or q_proj, k_proj and v_proj
  bool fused_first = true;  // of a gated layer: linear1, or gate_proj and up_proj
  bool layer_scale = false;
  // Of biases and of relative embeddings: the view of the layer before, where it has one.
  bool shared_position_bias = false;
  DType type = DType::kF32;
};

enum class WeightKind {
  kMatrix,
  kBias,
  kNormWeight,
  kNormBias,
  kLayerScale,
  kPositionBias,
  kRelativeEmbeddings
};

// A tensor to be made.
struct NewWeight {
  std::string name;   // of torch, without the layer: "self_attn.in_proj_weight", "linear1.bias"
  std::string alias;  // "ff.0.weight", or ""
  WeightKind kind;
  Shape shape;
  size_t inputs;         // columns of the matrix, also for its bias; 0 for the others
  double weight_offset;  // of the norm that a kNormWeight belongs to
  DType type;
};

using MakeWeight = std::function<WeightView(const NewWeight&)>;

// Calls `make` for each tensor: layer after layer in the order of the table, then the final norm's.
// `choices` has an entry for each layer; the final norm goes by the last.
EncoderWeights MakeWeights(const EncoderConfig& config, std::span<const WeightChoices> choices,
                           const MakeWeight& make);

}  // namespace encore

#endif  // ENCORE_REFERENCE_LAYER_WEIGHTS_H_
