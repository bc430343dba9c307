// SPDX-License-Identifier: Apache-2.0
//
// Small models whose layers are those of families of encoders in use (engine/nn/families.md), for
// published hashes.

#ifndef ENCORE_REFERENCE_GOLDEN_FAMILIES_H_
#define ENCORE_REFERENCE_GOLDEN_FAMILIES_H_

#include "encore/encoder.h"
#include "reference/layer_weights.h"

namespace encore::reference {

struct GoldenFamily {
  EncoderConfig config;
  WeightChoices choices;
};

GoldenFamily ModernBert();  // rotary, a gate, a global layer without a norm and a local one
GoldenFamily Gemma();       // norms on both sides and of heads, grouped heads, a local layer
GoldenFamily T5();          // buckets, no scale, RMSNorm
GoldenFamily Qwen3();       // causal, norms of heads, grouped heads wider than d_model
GoldenFamily Vit();     // the layers of pictures: kPre, QuickGELU of CLIP, layer scales of DINOv2
GoldenFamily Dinov3();  // rotary on a grid, layer scales, a gate
GoldenFamily Jina();    // ALiBi of a number of heads that is no power of two, kPost, a gate

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_GOLDEN_FAMILIES_H_
