// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's names for an encoder's tensors, with the shape of each. Not here: files and values
// (torch_weights.cc).

#ifndef ENCORE_ENGINE_NN_TORCH_NAMES_H_
#define ENCORE_ENGINE_NN_TORCH_NAMES_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "encore/encoder.h"

namespace encore::internal {

// An extent in terms of the encoder's sizes.
enum class TorchExtent { kNone, kModel, kThreeModel, kFeedForward };

// One of a layer's tensors: its name, another name for it (or ""), where its view goes, and its
// shape; kNone columns make a vector.
struct TorchTensor {
  std::string_view name;
  std::string_view alias;
  ConstView EncoderLayerWeights::*view;
  TorchExtent rows;
  TorchExtent columns;

  bool is_bias() const { return name.ends_with("bias"); }
};

inline constexpr std::array<TorchTensor, 12> kTorchTensors = {{
    {"self_attn.in_proj_weight", "", &EncoderLayerWeights::in_proj_weight, TorchExtent::kThreeModel,
     TorchExtent::kModel},
    {"self_attn.in_proj_bias", "", &EncoderLayerWeights::in_proj_bias, TorchExtent::kThreeModel,
     TorchExtent::kNone},
    {"self_attn.out_proj.weight", "", &EncoderLayerWeights::out_proj_weight, TorchExtent::kModel,
     TorchExtent::kModel},
    {"self_attn.out_proj.bias", "", &EncoderLayerWeights::out_proj_bias, TorchExtent::kModel,
     TorchExtent::kNone},
    {"linear1.weight", "ff.0.weight", &EncoderLayerWeights::linear1_weight,
     TorchExtent::kFeedForward, TorchExtent::kModel},
    {"linear1.bias", "ff.0.bias", &EncoderLayerWeights::linear1_bias, TorchExtent::kFeedForward,
     TorchExtent::kNone},
    {"linear2.weight", "ff.2.weight", &EncoderLayerWeights::linear2_weight, TorchExtent::kModel,
     TorchExtent::kFeedForward},
    {"linear2.bias", "ff.2.bias", &EncoderLayerWeights::linear2_bias, TorchExtent::kModel,
     TorchExtent::kNone},
    {"norm1.weight", "", &EncoderLayerWeights::norm1_weight, TorchExtent::kModel,
     TorchExtent::kNone},
    {"norm1.bias", "", &EncoderLayerWeights::norm1_bias, TorchExtent::kModel, TorchExtent::kNone},
    {"norm2.weight", "", &EncoderLayerWeights::norm2_weight, TorchExtent::kModel,
     TorchExtent::kNone},
    {"norm2.bias", "", &EncoderLayerWeights::norm2_bias, TorchExtent::kModel, TorchExtent::kNone},
}};
// Positions of the two whose shapes tell d_model and d_ff.
inline constexpr size_t kTorchInProjWeight = 0;
inline constexpr size_t kTorchLinear1Weight = 4;

// The names of the final norm.
inline constexpr std::string_view kTorchNormWeight = "norm.weight";
inline constexpr std::string_view kTorchNormBias = "norm.bias";

// Where a tensor of this name belongs.
struct TorchPlace {
  std::optional<size_t> layer;  // none: without "layers.N."
  size_t tensor = 0;            // in kTorchTensors
};

// "layers.3.linear1.bias" or "linear1.bias"; none if it is no name of a layer's tensor, or the
// number is not a plain decimal that fits size_t.
std::optional<TorchPlace> ParseTorchName(std::string_view name);

// The name of a tensor as a person would look for it: "layers.3.linear1.bias", "linear1.bias".
std::string TorchName(const TorchPlace& place);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_TORCH_NAMES_H_
