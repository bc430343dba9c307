// SPDX-License-Identifier: Apache-2.0
//
// Packs a batch and runs the model on it.

#include "engine/text/forward.h"

#include <algorithm>
#include <limits>

#include "engine/base/int_math.h"

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
  const Result<size_t> bytes = encoder.WorkspaceBytes(wanted, threads);
  if (!bytes.ok()) return bytes.status();
  if (Status status = scratch->workspace.Reserve(*bytes); !status.ok()) return status;
  limits = wanted;
  scratch->threads = threads;
  return {};
}

Result<const float*> ForwardBatch(const TextModel& model, std::span<const size_t> texts,
                                  OutputRows rows, Scratch* scratch, const Executor& executor) {
  if (Status status = Pack(texts, scratch); !status.ok()) return status;
  const size_t tokens = scratch->starts.back();
  const size_t width = model.d_model();
  size_t values = 0;
  if (!CheckedMul(tokens, width, &values)) return TooManyTokens();
  const Result<float*> x = scratch->x.Get<float>(values);
  if (!x.ok()) return x.status();
  const Shape shape(tokens, width);
  const MutableView x_view(*x, shape);
  const TokenBatch batch{
      .ids = scratch->ids, .type_ids = scratch->type_ids, .seq_starts = scratch->starts};
  if (Status status = model.Embed(batch, x_view, executor); !status.ok()) return status;
  MutableView hidden = x_view;
  if (rows != OutputRows::kAll) {
    // Fewer values than x has.
    const Result<float*> some = scratch->hidden.Get<float>(texts.size() * width);
    if (!some.ok()) return some.status();
    hidden = MutableView(*some, Shape(texts.size(), width));
  }
  if (Status status = model.Forward(batch, rows, x_view, hidden, scratch->workspace, executor);
      !status.ok()) {
    return status;
  }
  return static_cast<const float*>(hidden.data());
}

}  // namespace encore::internal
