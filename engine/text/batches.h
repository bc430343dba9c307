// SPDX-License-Identifier: Apache-2.0
//
// Which texts are computed together: the longest first, about so many tokens at once. No result
// depends on any of it.

#ifndef ENCORE_ENGINE_TEXT_BATCHES_H_
#define ENCORE_ENGINE_TEXT_BATCHES_H_

#include <cstddef>
#include <vector>

#include "encore/encoder.h"
#include "engine/text/token_store.h"

namespace encore::inline v0_1::internal {

// Fills `order` with 0 .. store.size() - 1, longer texts first, equals as they were.
void SortByLength(const TokenStore& store, std::vector<size_t>* order);

// The end of the batch that begins at order[begin]: at least one text, then as many as fit.
size_t BatchEnd(const TokenStore& store, const std::vector<size_t>& order, size_t begin,
                size_t batch_tokens);

// Tokens and texts of the largest batches.
BatchLimits LargestBatches(const TokenStore& store, const std::vector<size_t>& order,
                           size_t batch_tokens);

// The end of the texts from `begin` on whose tokens are held at once.
size_t ChunkEnd(const TextInputs& inputs, size_t begin);

// Tokens of a batch, from the caller's wish (0: none) and the executor's threads.
size_t BatchTokens(size_t wanted, int threads);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_BATCHES_H_
