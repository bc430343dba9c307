// SPDX-License-Identifier: Apache-2.0
//
// An EncoderConfig from a weight file's shapes and metadata.

#ifndef ENCORE_ENGINE_NN_TORCH_METADATA_H_
#define ENCORE_ENGINE_NN_TORCH_METADATA_H_

#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/status.h"
#include "encore/torch_weights.h"

namespace encore::inline v0_1::internal {

// Read from the tensors.
struct TorchFacts {
  size_t d_model = 0;
  size_t d_ff = 0;
  size_t num_layers = 0;
  bool has_biases = false;
  bool final_norm = false;
};

// Overrides win over metadata. kInvalidArgument for keys that are unknown, malformed or contradict
// the facts, for a missing nhead or activation, an nhead that does not divide d_model, and bad
// overrides.
Result<EncoderConfig> MakeTorchConfig(const SafetensorsMetadata& metadata,
                                      const TorchOverrides& overrides, const TorchFacts& facts);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_TORCH_METADATA_H_
