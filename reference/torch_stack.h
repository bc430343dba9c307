// SPDX-License-Identifier: Apache-2.0
//
// The sizes and options of torch.nn.TransformerEncoder, for what needs no other switch of
// LayerConfig.

#ifndef ENCORE_REFERENCE_TORCH_STACK_H_
#define ENCORE_REFERENCE_TORCH_STACK_H_

#include <cstddef>

#include "encore/encoder.h"

namespace encore {

struct TorchStack {
  size_t d_model = 0;
  size_t num_heads = 0;
  size_t d_ff = 0;
  size_t num_layers = 1;
  Activation activation = Activation::kRelu;
  bool norm_first = false;
  double epsilon = 1e-5;
  bool final_norm = false;

  operator EncoderConfig() const {  // NOLINT(google-explicit-constructor): it stands for one
    const NormConfig norm{.epsilon = epsilon};
    return EncoderConfig::Uniform(
        d_model, num_layers,
        {.num_heads = num_heads,
         .d_ff = d_ff,
         .activation = activation,
         .norm_placement = norm_first ? NormPlacement::kPre : NormPlacement::kPost,
         .norm = norm},
        final_norm ? norm : NormConfig{.type = NormType::kNone});
  }
};

}  // namespace encore

#endif  // ENCORE_REFERENCE_TORCH_STACK_H_
