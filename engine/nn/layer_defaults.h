// SPDX-License-Identifier: Apache-2.0
//
// What a LayerConfig's zeros and empty lists stand for.

#ifndef ENCORE_ENGINE_NN_LAYER_DEFAULTS_H_
#define ENCORE_ENGINE_NN_LAYER_DEFAULTS_H_

#include "encore/encoder.h"

namespace encore::inline v0_1::internal {

// The checked configuration with every default filled in. Under the default rounding mode.
EncoderConfig WithDefaults(const EncoderConfig& config);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_LAYER_DEFAULTS_H_
