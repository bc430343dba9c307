// SPDX-License-Identifier: Apache-2.0
//
// The order of texts and the ends of batches.

#include "engine/text/batches.h"

#include <algorithm>
#include <numeric>

namespace encore::inline v0_1::internal {
namespace {

// A chunk: enough texts that each length fills batches, little memory (4 bytes a token).
constexpr size_t kChunkTexts = 8192;
constexpr size_t kChunkBytes = size_t{16} << 20;

}  // namespace

void SortByLength(const TokenStore& store, std::vector<size_t>* order) {
  order->resize(store.size());
  std::iota(order->begin(), order->end(), size_t{0});
  if (store.size() < 2) return;
  std::sort(order->begin(), order->end(), [&](size_t a, size_t b) {
    return store.length(a) != store.length(b) ? store.length(a) > store.length(b) : a < b;
  });
}

size_t BatchEnd(const TokenStore& store, const std::vector<size_t>& order, size_t begin,
                size_t batch_tokens) {
  size_t tokens = store.length(order[begin]);
  size_t end = begin + 1;
  // Every text has a token, so sums stay below the tokens of a batch and one text.
  while (end < order.size() && tokens < batch_tokens &&
         store.length(order[end]) <= batch_tokens - tokens) {
    tokens += store.length(order[end]);
    ++end;
  }
  return end;
}

BatchLimits LargestBatches(const TokenStore& store, const std::vector<size_t>& order,
                           size_t batch_tokens) {
  BatchLimits largest{.tokens = 0, .sequences = 0};
  for (size_t begin = 0; begin < order.size();) {
    const size_t end = BatchEnd(store, order, begin, batch_tokens);
    size_t tokens = 0;
    for (size_t i = begin; i < end; ++i) tokens += store.length(order[i]);
    largest.tokens = std::max(largest.tokens, tokens);
    largest.sequences = std::max(largest.sequences, end - begin);
    begin = end;
  }
  return largest;
}

size_t ChunkEnd(const TextInputs& inputs, size_t begin) {
  size_t bytes = 0;
  size_t end = begin;
  while (end < inputs.size() && end - begin < kChunkTexts && bytes < kChunkBytes) {
    bytes += inputs.texts[end].size();
    if (inputs.second != nullptr) bytes += (*inputs.second)[end].size();
    ++end;
  }
  return end;
}

size_t BatchTokens(size_t wanted, int threads) {
  if (wanted > 0) return wanted;
  // One thread is as fast with 256 tokens as with 8192 (MiniLM, AVX-512). Several share a batch by
  // row blocks of about 128, of which each should have four or more, or the last ones to finish
  // leave the others idle. Memory is some 10 KB a token of MiniLM.
  constexpr size_t kLeast = 2048;
  constexpr size_t kPerThread = 512;
  return std::max(kLeast, kPerThread * static_cast<size_t>(threads));
}

}  // namespace encore::internal
