// SPDX-License-Identifier: Apache-2.0
//
// Checks of an encoder's configuration, weights, batches, inputs and taps, with their error texts.

#ifndef ENCORE_ENGINE_NN_ENCODER_CHECK_H_
#define ENCORE_ENGINE_NN_ENCODER_CHECK_H_

#include "encore/encoder.h"
#include "encore/status.h"

namespace encore::inline v0_1::internal {

// Every switch of every layer, and the options (config_check.cc).
Status CheckConfig(const EncoderConfig& config);
Status CheckOptions(const EncoderConfig& config, const EncoderOptions& options);

// Every tensor's shape, and the scales' numbers; the configuration is already checked. Names are
// those of a torch state_dict (weights_check.cc).
Status CheckWeights(const EncoderConfig& config, const EncoderWeights& weights);

// ---- Checks of a batch, its input and output, and its taps (encoder_check.cc).
Status CheckSequenceStarts(const Batch& batch);
// The mask and the positions; sequence starts are already checked.
Status CheckBatch(const EncoderConfig& config, const Batch& batch);
Status CheckInputOutput(const EncoderConfig& config, const Batch& batch, const ConstView& x,
                        const MutableView& y);
// The same where y has a row for each sequence, of which none is empty, and the rows of x are
// written too.
Status CheckInputOutputRows(const EncoderConfig& config, const Batch& batch, const MutableView& x,
                            const MutableView& y);
// x and y are already checked.
Status CheckTaps(const EncoderConfig& config, const Batch& batch, const Taps& taps,
                 const ConstView& x, const MutableView& y);
// Whether checked taps want anything of a layer.
bool TapsLayer(const Taps& taps, size_t layer, size_t sequences);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_ENCODER_CHECK_H_
