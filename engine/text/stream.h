// SPDX-License-Identifier: Apache-2.0
//
// The loop over all texts of a call: chunks are tokenized, sorted, cut into batches and computed.

#ifndef ENCORE_ENGINE_TEXT_STREAM_H_
#define ENCORE_ENGINE_TEXT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "encore/status.h"
#include "engine/text/text_encoder_impl.h"
#include "engine/text/token_store.h"

namespace encore::inline v0_1::internal {

struct StreamOptions {
  Executor executor;
  TokenizeOptions tokenize;
  size_t batch_tokens = 0;  // 0: encore's choice
  OutputRows rows = OutputRows::kAll;
};

// Takes a batch's hidden states: [tokens, d_model] for kAll, else [texts, d_model]; scratch->starts
// has where each text begins. `texts` are indices into the call's.
using TakeBatch =
    std::function<Status(const float* hidden, std::span<const size_t> texts, Scratch* scratch)>;

// Counts may be null.
Status StreamTexts(const TextEncoder::Impl& impl, const TextInputs& inputs,
                   const StreamOptions& options, const TakeBatch& take, TextCounts* counts);
// The same from ids.
Status StreamIds(const TextEncoder::Impl& impl, std::span<const std::vector<int32_t>> ids,
                 std::span<const std::vector<uint8_t>> type_ids, size_t max_length,
                 const StreamOptions& options, const TakeBatch& take, TextCounts* counts);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_STREAM_H_
