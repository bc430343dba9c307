// SPDX-License-Identifier: Apache-2.0
//
// When a tensor of the table (base/layer_tensors.h) has a place in a layer, and the words in which
// errors say so.

#ifndef ENCORE_ENGINE_NN_LAYER_PLACES_H_
#define ENCORE_ENGINE_NN_LAYER_PLACES_H_

#include <string_view>

#include "encore/encoder.h"
#include "engine/base/layer_tensors.h"

namespace encore::inline v0_1::internal {

// "(H + 2 G) D" and the like: the extent in words.
std::string_view ExtentText(Extent extent);

// Whether the configuration, and what else is given, leave a place for such a tensor.
bool HasPlace(TensorPlace place, const LayerConfig& layer, const EncoderLayerWeights& weights);
// Why it has none: "the layer has no qk_norm".
std::string_view WhyNoPlace(TensorPlace place, const LayerConfig& layer);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_LAYER_PLACES_H_
