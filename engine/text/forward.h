// SPDX-License-Identifier: Apache-2.0
//
// One batch of texts' tokens through the model.

#ifndef ENCORE_ENGINE_TEXT_FORWARD_H_
#define ENCORE_ENGINE_TEXT_FORWARD_H_

#include <cstddef>
#include <span>

#include "encore/executor.h"
#include "encore/status.h"
#include "engine/models/text_model.h"
#include "engine/text/scratch.h"

namespace encore::inline v0_1::internal {

// Makes the encoder's workspace large enough for batches within these limits.
Status ReserveWorkspace(const Encoder& encoder, const BatchLimits& batches,
                        const Executor& executor, Scratch* scratch);

// Packs the tokens of scratch->tokens' texts `texts` and computes their hidden states: [tokens,
// d_model] for kAll, else [texts, d_model], in scratch; scratch->starts has where each begins.
// Valid until the next call. The workspace was reserved.
Result<const float*> ForwardBatch(const TextModel& model, std::span<const size_t> texts,
                                  OutputRows rows, Scratch* scratch, const Executor& executor);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_FORWARD_H_
