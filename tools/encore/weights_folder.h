// SPDX-License-Identifier: Apache-2.0
//
// The encoder's weights in a model's folder, for commands that write the folder again with other
// tensors. Not here: computing with a model (engine/models/text_model.h), the tensors themselves.

#ifndef ENCORE_TOOLS_ENCORE_WEIGHTS_FOLDER_H_
#define ENCORE_TOOLS_ENCORE_WEIGHTS_FOLDER_H_

#include <span>
#include <string>

#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "engine/io/safetensors_stream.h"
#include "engine/models/model_config.h"
#include "engine/models/model_tensors.h"
#include "engine/models/weight_files.h"

namespace encore::tool {

struct WeightsFolder {
  internal::ModelConfig config;
  internal::WeightFiles files;
  internal::ModelTensors tensors;
  EncoderWeights weights;        // views of the files
  SafetensorsMetadata metadata;  // of all files
};

// Throws Failure: what TextEncoder would refuse of the model, and weights that have been converted.
WeightsFolder OpenWeightsFolder(const std::string& path);

// Throws Failure where something is at `out`.
void WantNothingAt(const std::string& out);

// Makes the folder `out`: these tensors in one model.safetensors, and copies of all other files of
// `in`. Throws Failure, and then there is no `out`.
void WriteWeightsFolder(const std::string& in, const std::string& out, const WeightsFolder& folder,
                        std::span<const internal::StreamedTensor> tensors,
                        const SafetensorsMetadata& metadata);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_WEIGHTS_FOLDER_H_
