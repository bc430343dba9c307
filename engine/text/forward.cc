// SPDX-License-Identifier: Apache-2.0
//
// Packs a batch and runs the model on it.

#include "engine/text/forward.h"

#include <algorithm>
#include <limits>

#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

Status TooManyTokens() {
  return Status(ErrorCode::kOutOfMemory, "a batch's tokens exceed what can be addressed");
}

Status Pack(std::span<const size_t> texts, Scratch* scratch) {
  const TokenStore& store = scratch->tokens;
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

}  // namespace

Status ReserveWorkspace(const Encoder& encoder, const BatchLimits& batches,
                        const Executor& executor, Scratch* scratch) {
  BatchLimits& limits = scratch->limits;
  const int threads = executor.threads();
  if (batches.tokens <= limits.tokens && batches.sequences <= limits.sequences &&
      threads == scratch->threads) {
    return {};
  }
  // Large batches are about as large as the caller wants them each time.
  const bool small = batches.tokens <= 1024;
  const BatchLimits wanted = {
      .tokens = std::max(small ? RoundedUp(batches.tokens) : batches.tokens, limits.tokens),
      .sequences =
          std::max(small ? RoundedUp(batches.sequences) : batches.sequences, limits.sequences)};
  ENCORE_ASSIGN_OR_RETURN(const size_t bytes, encoder.WorkspaceBytes(wanted, threads));
  ENCORE_RETURN_IF_ERROR(scratch->workspace.Reserve(bytes));
  limits = wanted;
  scratch->threads = threads;
  return {};
}

Result<const float*> ForwardBatch(const TextModel& model, std::span<const size_t> texts,
                                  OutputRows rows, Scratch* scratch, const Executor& executor) {
  ENCORE_RETURN_IF_ERROR(Pack(texts, scratch));
  const size_t tokens = scratch->starts.back();
  const size_t width = model.d_model();
  size_t values = 0;
  if (!CheckedMul(tokens, width, &values)) return TooManyTokens();
  ENCORE_ASSIGN_OR_RETURN(float* const x, scratch->x.Get<float>(values));
  const Shape shape(tokens, width);
  const MutableView x_view(x, shape);
  const TokenBatch batch{
      .ids = scratch->ids, .type_ids = scratch->type_ids, .seq_starts = scratch->starts};
  ENCORE_RETURN_IF_ERROR(model.Embed(batch, x_view, executor));
  MutableView hidden = x_view;
  if (rows != OutputRows::kAll) {
    // Fewer values than x has.
    ENCORE_ASSIGN_OR_RETURN(float* const some, scratch->hidden.Get<float>(texts.size() * width));
    hidden = MutableView(some, Shape(texts.size(), width));
  }
  ENCORE_RETURN_IF_ERROR(model.Forward(batch, rows, x_view, hidden, scratch->workspace, executor));
  return static_cast<const float*>(hidden.data());
}

}  // namespace encore::internal
