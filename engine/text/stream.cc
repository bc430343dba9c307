// SPDX-License-Identifier: Apache-2.0
//
// The loop over all texts. Texts are computed together, the longest first, about so many tokens at
// once. No result depends on any of it.

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/text/text_encoder_impl.h"

namespace encore::inline v0_1::internal {
namespace {

// Of a chunk, beside kChunkTexts: little memory (4 bytes a token).
constexpr size_t kChunkBytes = size_t{16} << 20;

// Fills `order` with 0 .. store.size() - 1, longer texts first, equals as they were.
void SortByLength(const TokenStore& store, std::vector<size_t>* order) {
  order->resize(store.size());
  std::iota(order->begin(), order->end(), size_t{0});
  if (store.size() < 2) return;
  std::sort(order->begin(), order->end(), [&](size_t a, size_t b) {
    return store.length(a) != store.length(b) ? store.length(a) > store.length(b) : a < b;
  });
}

// The end of the batch that begins at order[begin]: at least one text, then as many as fit.
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

// The most tokens and the most texts that any batch has; these may be two different batches.
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

// The end of the texts from `begin` on whose tokens are held at once; the caller holds ids.
size_t ChunkEnd(const TextInputs& inputs, size_t begin) {
  if (inputs.ids) return inputs.size();
  size_t bytes = 0;
  size_t end = begin;
  while (end < inputs.size() && end - begin < kChunkTexts && bytes < kChunkBytes) {
    bytes += inputs.texts[end].size();
    if (inputs.second != nullptr) bytes += (*inputs.second)[end].size();
    ++end;
  }
  return end;
}

Status TooManyTokens() {
  return Status(ErrorCode::kOutOfMemory, "a batch's tokens exceed what can be addressed");
}

// `marks`: tokens of an expansion are seen by nobody.
Status Pack(std::span<const size_t> texts, bool marks, CallScratch* scratch) {
  const TokenStore& store = scratch->tokens;
  scratch->unseen.clear();
  scratch->ids.clear();
  scratch->type_ids.clear();
  scratch->starts.assign(1, 0);
  size_t tokens = 0;
  for (const size_t text : texts) {
    if (!CheckedAdd(tokens, store.length(text), &tokens)) return TooManyTokens();
    const std::span<const int32_t> ids = store.ids(text);
    scratch->ids.insert(scratch->ids.end(), ids.begin(), ids.end());
    if (store.has_type_ids()) {
      const std::span<const uint8_t> types = store.type_ids(text);
      scratch->type_ids.insert(scratch->type_ids.end(), types.begin(), types.end());
    }
    scratch->starts.push_back(tokens);
    if (!marks) continue;
    scratch->unseen.resize(scratch->unseen.size() + store.own_length(text), 0);
    scratch->unseen.resize(tokens, 1);
  }
  return {};
}

// A power of two that is not below `count`, or `count` where there is none: texts of slowly rising
// lengths then need new memory a few times only.
size_t RoundedUp(size_t count) {
  size_t rounded = 64;
  while (rounded < count && rounded <= std::numeric_limits<size_t>::max() / 2) rounded *= 2;
  return std::max(rounded, count);
}

// Makes the encoder's workspace large enough for batches within these limits.
Status ReserveWorkspace(const Encoder& encoder, const BatchLimits& batches,
                        const Executor& executor, CallScratch* scratch) {
  const int threads = executor.threads();
  ENCORE_ASSIGN_OR_RETURN(size_t bytes, encoder.WorkspaceBytes(batches, threads));
  if (bytes <= scratch->workspace.size_bytes()) return {};
  // Large batches are about as large as the caller wants them each time.
  if (batches.tokens <= 1024) {
    ENCORE_ASSIGN_OR_RETURN(
        bytes, encoder.WorkspaceBytes(
                   {.tokens = RoundedUp(batches.tokens), .sequences = RoundedUp(batches.sequences)},
                   threads));
  }
  return scratch->workspace.Reserve(bytes);
}

size_t TokensOf(const TokenStore& store) {
  size_t tokens = 0;
  for (size_t i = 0; i < store.size(); ++i) tokens += store.length(i);
  return tokens;
}

// Packs the tokens of scratch->tokens' texts `texts` and computes their hidden states: [tokens,
// hidden_width()] for kAll, else [texts, hidden_width()], in scratch; scratch->starts has where
// each begins. Valid until the next call. The workspace was reserved.
Result<const float*> ForwardBatch(const TextModel& model, std::span<const size_t> texts, bool marks,
                                  const StreamOptions& options, CallScratch* scratch) {
  const Executor& executor = options.executor;
  options.watch->Enter(&CallStats::tokenizing);
  ENCORE_RETURN_IF_ERROR(Pack(texts, marks, scratch));
  options.watch->Enter(&CallStats::embedding);
  const size_t tokens = scratch->starts.back();
  const size_t width = model.d_model();
  size_t values = 0;
  if (!CheckedMul(tokens, width, &values)) return TooManyTokens();
  ENCORE_ASSIGN_OR_RETURN(float* const x, scratch->x.Get<float>(values));
  const Shape shape(tokens, width);
  const MutableView x_view(x, shape);
  const TokenBatch batch{.ids = scratch->ids,
                         .type_ids = scratch->type_ids,
                         .seq_starts = scratch->starts,
                         .unseen = scratch->unseen};
  const OutputRows rows = options.rows ? *options.rows : model.head_rows(batch);
  scratch->rows = rows;
  ENCORE_RETURN_IF_ERROR(model.Embed(batch, x_view, &scratch->model, executor));
  options.watch->Enter(&CallStats::layers);
  MutableView hidden = x_view;
  if (rows != OutputRows::kAll || model.has_projection()) {
    const size_t count = rows == OutputRows::kAll ? tokens : texts.size();
    if (!CheckedMul(count, model.hidden_width(), &values)) return TooManyTokens();
    ENCORE_ASSIGN_OR_RETURN(float* const some, scratch->hidden.Get<float>(values));
    hidden = MutableView(some, Shape(count, model.hidden_width()));
  }
  ENCORE_RETURN_IF_ERROR(
      model.Forward(batch, rows, x_view, hidden, scratch->workspace, &scratch->model, executor));
  return static_cast<const float*>(hidden.data());
}

// Hands over a batch of scratch->tokens' texts, whose tokens are packed.
Status TakeComputed(const float* rows, std::span<size_t> texts, const StreamOptions& options,
                    const TakeBatch& take, CallScratch* scratch) {
  options.watch->Enter(&CallStats::pooling);
  for (size_t& text : texts) text += scratch->first_text;
  ENCORE_RETURN_IF_ERROR(take(rows, texts, scratch));
  options.watch->AddDone(texts.size(), scratch->starts.back());
  return {};
}

// The same of static embeddings, where nothing is gained by an order.
Status ComputeStatic(const TextEncoder::Impl& impl, const StreamOptions& options,
                     const TakeBatch& take, CallScratch* scratch) {
  const size_t batch = kStaticTexts * static_cast<size_t>(options.executor.threads());
  std::vector<size_t>& order = scratch->order;
  order.resize(scratch->tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t begin = 0; begin < order.size(); begin += batch) {
    const std::span<size_t> texts(order.data() + begin, std::min(batch, order.size() - begin));
    options.watch->Enter(&CallStats::tokenizing);
    ENCORE_RETURN_IF_ERROR(Pack(texts, /*marks=*/false, scratch));
    options.watch->Enter(&CallStats::embedding);
    size_t values = 0;
    if (!CheckedMul(texts.size(), impl.model.d_model(), &values)) return TooManyTokens();
    ENCORE_ASSIGN_OR_RETURN(float* const means, scratch->hidden.Get<float>(values));
    ENCORE_RETURN_IF_ERROR(
        impl.model.Means({.ids = scratch->ids, .type_ids = {}, .seq_starts = scratch->starts},
                         means, options.executor));
    ENCORE_RETURN_IF_ERROR(TakeComputed(means, texts, options, take, scratch));
  }
  return {};
}

// Everything that scratch->tokens holds.
Status ComputeStored(const TextEncoder::Impl& impl, bool marks, const StreamOptions& options,
                     const TakeBatch& take, CallScratch* scratch) {
  if (impl.model.is_static()) return ComputeStatic(impl, options, take, scratch);
  const TokenStore& store = scratch->tokens;
  std::vector<size_t>& order = scratch->order;
  SortByLength(store, &order);
  const size_t batch_tokens = BatchTokens(options.batch_tokens, options.executor.threads());
  ENCORE_RETURN_IF_ERROR(ReserveWorkspace(
      impl.model.encoder(), LargestBatches(store, order, batch_tokens), options.executor, scratch));
  for (size_t begin = 0; begin < order.size();) {
    const size_t end = BatchEnd(store, order, begin, batch_tokens);
    const std::span<size_t> texts(order.data() + begin, end - begin);
    ENCORE_ASSIGN_OR_RETURN(const float* const hidden,
                            ForwardBatch(impl.model, texts, marks, options, scratch));
    ENCORE_RETURN_IF_ERROR(TakeComputed(hidden, texts, options, take, scratch));
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

void StartCounts(size_t texts, TextCounts* counts) {
  if (counts == nullptr) return;
  counts->tokens.assign(texts, 0);
  counts->cut.assign(texts, 0);
  counts->texts_cut = 0;
}

}  // namespace

size_t BatchTokens(size_t wanted, int threads) {
  if (wanted > 0) return wanted;
  // One thread is as fast with 256 tokens as with 8192 (MiniLM, AVX-512). Several share a batch by
  // row blocks of about 128, of which each should have four or more, or the last ones to finish
  // leave the others idle. Memory is some 10 KB a token of MiniLM.
  constexpr size_t kLeast = 2048;
  constexpr size_t kPerThread = 512;
  return std::max(kLeast, kPerThread * static_cast<size_t>(threads));
}

Status StreamTexts(const TextEncoder::Impl& impl, const TextInputs& given,
                   const StreamOptions& options, const TakeBatch& take, TextCounts* counts,
                   const TakeTokens& take_tokens) {
  TextInputs inputs = given;
  if (!inputs.ids && inputs.expansion == nullptr && impl.padding) inputs.expansion = &*impl.padding;
  if (!inputs.ids && impl.model2vec) inputs.model2vec = &*impl.model2vec;
  const bool marks = inputs.expansion != nullptr && !inputs.expansion->attend;
  if (!inputs.ids) ENCORE_RETURN_IF_ERROR(WantTokenizer(impl));
  StartCounts(inputs.size(), counts);
  const ScratchOfCall scratch(options.scratch, &impl.scratch);
  ENCORE_RETURN_IF_ERROR(scratch.status());
  TokenStore& tokens = scratch->tokens;
  CallWatch& watch = *options.watch;
  watch.Begin(inputs.size());
  for (size_t begin = 0; begin < inputs.size();) {
    watch.Enter(&CallStats::tokenizing);
    const size_t end = ChunkEnd(inputs, begin);
    scratch->first_text = begin;
    ENCORE_RETURN_IF_ERROR(
        inputs.ids ? tokens.Refer(impl.model, inputs, options.tokenize.max_length)
                   : tokens.Fill(*impl.tokenizer, impl.model, impl.use_type_ids, options.tokenize,
                                 inputs, begin, end, options.executor));
    Count(tokens, begin, counts);
    watch.AddTokenized(TokensOf(tokens));
    if (take_tokens) ENCORE_RETURN_IF_ERROR(take_tokens(tokens));
    ENCORE_RETURN_IF_ERROR(ComputeStored(impl, marks, options, take, scratch.get()));
    if (watch.WantsBytes()) watch.NoteBytes(scratch->size_bytes());
    begin = end;
  }
  return {};
}

}  // namespace encore::internal
