// SPDX-License-Identifier: Apache-2.0
//
// Views of an encoder's weights by a plan's tensor names, with shapes checked against the
// configuration.

#ifndef ENCORE_ENGINE_MODELS_LAYER_WEIGHTS_H_
#define ENCORE_ENGINE_MODELS_LAYER_WEIGHTS_H_

#include <vector>

#include "encore/encoder.h"
#include "encore/status.h"
#include "engine/models/family.h"
#include "engine/models/model_tensors.h"

namespace encore::inline v0_1::internal {

// Valid as long as a copy of the tensors' files is.
Result<EncoderWeights> ViewLayers(const ModelPlan& plan, ModelTensors* tensors);

// The matrices that are not int8.
std::vector<MatrixOfLayer> FloatMatrices(const EncoderWeights& weights);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_LAYER_WEIGHTS_H_
