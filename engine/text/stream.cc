// SPDX-License-Identifier: Apache-2.0
//
// The loop over all texts.

#include "engine/text/stream.h"

#include "engine/base/status_macros.h"
#include "engine/text/batches.h"
#include "engine/text/forward.h"

namespace encore::inline v0_1::internal {
namespace {

// Everything that scratch->tokens holds; they are the call's texts from `first` on.
Status ComputeStored(const TextEncoder::Impl& impl, size_t first, const StreamOptions& options,
                     const TakeBatch& take, Scratch* scratch) {
  const TokenStore& store = scratch->tokens;
  std::vector<size_t>& order = scratch->order;
  SortByLength(store, &order);
  const size_t batch_tokens = BatchTokens(options.batch_tokens, options.executor.threads());
  ENCORE_RETURN_IF_ERROR(ReserveWorkspace(
      impl.model.encoder(), LargestBatches(store, order, batch_tokens), options.executor, scratch));
  for (size_t begin = 0; begin < order.size();) {
    const size_t end = BatchEnd(store, order, begin, batch_tokens);
    const std::span<size_t> texts(order.data() + begin, end - begin);
    ENCORE_ASSIGN_OR_RETURN(const float* const hidden, ForwardBatch(impl.model, texts, options.rows,
                                                                    scratch, options.executor));
    for (size_t& text : texts) text += first;
    ENCORE_RETURN_IF_ERROR(take(hidden, texts, scratch));
    begin = end;
  }
  return {};
}

void Count(const TokenStore& store, size_t first, TextCounts* counts) {
  if (counts == nullptr) return;
  for (size_t i = 0; i < store.size(); ++i) {
    counts->tokens[first + i] = store.length(i);
    counts->cut[first + i] = store.cut(i);
    counts->texts_cut += store.cut(i) > 0 ? 1 : 0;
  }
}

void Prepare(size_t texts, TextCounts* counts) {
  if (counts == nullptr) return;
  counts->tokens.assign(texts, 0);
  counts->cut.assign(texts, 0);
  counts->texts_cut = 0;
}

}  // namespace

Status StreamTexts(const TextEncoder::Impl& impl, const TextInputs& inputs,
                   const StreamOptions& options, const TakeBatch& take, TextCounts* counts) {
  ENCORE_RETURN_IF_ERROR(WantTokenizer(impl));
  Prepare(inputs.size(), counts);
  const ScratchPool::Lease scratch(&impl.scratch);
  for (size_t begin = 0; begin < inputs.size();) {
    const size_t end = ChunkEnd(inputs, begin);
    ENCORE_RETURN_IF_ERROR(scratch->tokens.Fill(*impl.tokenizer, impl.model, impl.use_type_ids,
                                                options.tokenize, inputs, begin, end,
                                                options.executor));
    Count(scratch->tokens, begin, counts);
    ENCORE_RETURN_IF_ERROR(ComputeStored(impl, begin, options, take, &*scratch));
    begin = end;
  }
  return {};
}

Status StreamIds(const TextEncoder::Impl& impl, std::span<const std::vector<int32_t>> ids,
                 std::span<const std::vector<uint8_t>> type_ids, size_t max_length,
                 const StreamOptions& options, const TakeBatch& take, TextCounts* counts) {
  Prepare(ids.size(), counts);
  const ScratchPool::Lease scratch(&impl.scratch);
  ENCORE_RETURN_IF_ERROR(scratch->tokens.Refer(impl.model, ids, type_ids, max_length));
  Count(scratch->tokens, 0, counts);
  return ComputeStored(impl, 0, options, take, &*scratch);
}

}  // namespace encore::internal
