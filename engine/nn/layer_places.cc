// SPDX-License-Identifier: Apache-2.0
//
// Places of the table's tensors.

#include "engine/nn/layer_places.h"

namespace encore::inline v0_1::internal {
namespace {

bool IsFusedQkv(const EncoderLayerWeights& w) {
  return !w.in_proj.weight.empty() ||
         (w.q_proj.weight.empty() && w.k_proj.weight.empty() && w.v_proj.weight.empty());
}

bool IsFusedFirst(const EncoderLayerWeights& w) {
  return !w.linear1.weight.empty() || (w.gate_proj.weight.empty() && w.up_proj.weight.empty());
}

}  // namespace

std::string_view ExtentText(Extent extent) {
  switch (extent) {
    case Extent::kOne:
      return "1";
    case Extent::kModel:
      return "d_model";
    case Extent::kQkv:
      return "(num_heads + 2 num_kv_heads) head_size";
    case Extent::kQueries:
      return "num_heads head_size";
    case Extent::kKeys:
      return "num_kv_heads head_size";
    case Extent::kHead:
      return "head_size";
    case Extent::kHeads:
      return "num_heads";
    case Extent::kBuckets:
      return "num_buckets";
    case Extent::kInner:
      return "d_ff";
    case Extent::kFirst:
      return "d_ff, twice where gated";
  }
  return "";
}

bool HasPlace(TensorPlace place, const LayerConfig& layer, const EncoderLayerWeights& weights) {
  switch (place) {
    case TensorPlace::kAlways:
      return true;
    case TensorPlace::kFusedQkv:
      return IsFusedQkv(weights);
    case TensorPlace::kApartQkv:
      return !IsFusedQkv(weights);
    case TensorPlace::kQkNorm:
      return layer.qk_norm.type != NormType::kNone;
    case TensorPlace::kBuckets:
      return layer.buckets.has_value();
    case TensorPlace::kLayerScale:
      return layer.norm_placement != NormPlacement::kBoth;
    case TensorPlace::kFusedFirst:
      return IsFusedFirst(weights);
    case TensorPlace::kApartFirst:
      return !IsFusedFirst(weights) && layer.gate != Gate::kNone;
    case TensorPlace::kNorm1:
      return layer.attention_norm;
    case TensorPlace::kPostNorm:
      return layer.norm_placement == NormPlacement::kBoth;
    case TensorPlace::kNever:
      return false;
  }
  return false;
}

std::string_view WhyNoPlace(TensorPlace place, const LayerConfig& layer) {
  switch (place) {
    case TensorPlace::kAlways:
      return "";
    case TensorPlace::kFusedQkv:
      return "q_proj, k_proj or v_proj is given too";
    case TensorPlace::kApartQkv:
      return "in_proj_weight is given too, or none of the weights of q_proj, k_proj and v_proj";
    case TensorPlace::kQkNorm:
      return "the layer has no qk_norm";
    case TensorPlace::kBuckets:
      return "the layer has no buckets";
    case TensorPlace::kLayerScale:
      return "the layer has norms on both sides";
    case TensorPlace::kFusedFirst:
      return "gate_proj or up_proj is given too";
    case TensorPlace::kApartFirst:
      return layer.gate == Gate::kNone
                 ? "the layer is not gated"
                 : "linear1.weight is given too, or neither weight of gate_proj and up_proj";
    case TensorPlace::kNorm1:
      return "the layer has no attention_norm";
    case TensorPlace::kPostNorm:
      return "the layer does not have norms on both sides";
    case TensorPlace::kNever:
      return "in_proj or linear1 has the scale of its input";
  }
  return "";
}

}  // namespace encore::internal
