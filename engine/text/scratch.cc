// SPDX-License-Identifier: Apache-2.0
//
// Taking and giving back scratch.

#include "engine/text/scratch.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/base/touch_pages.h"
#include "engine/tokenizer/tokenizer_parts.h"

namespace encore::inline v0_1 {

Scratch::Scratch() = default;
Scratch::~Scratch() = default;
Scratch::Scratch(Scratch&& other) noexcept : parts_(std::move(other.parts_)) {}
Scratch& Scratch::operator=(Scratch&& other) noexcept {
  parts_ = std::move(other.parts_);
  return *this;
}
size_t Scratch::size_bytes() const { return parts_ == nullptr ? 0 : parts_->size_bytes(); }

namespace internal {
namespace {

// Room for `count`, whose pages are touched.
template <typename T>
void Prepare(size_t count, std::vector<T>* vector) {
  vector->reserve(count);
  vector->resize(count);
}

Status Prepare(size_t bytes, FloatBuffer* buffer) {
  ENCORE_RETURN_IF_ERROR(buffer->Reserve(bytes));
  WritePages(buffer->memory().data(), buffer->size_bytes());
  return {};
}

}  // namespace

Status CallScratch::Prepare(const ScratchSizes& sizes) {
  const auto prepare = [](size_t count, auto* what) { return internal::Prepare(count, what); };
  prepare(sizes.texts, &order);
  prepare(sizes.batch.tokens, &ids);
  prepare(sizes.type_ids, &type_ids);
  prepare(sizes.batch.sequences + 1, &starts);
  prepare(sizes.unseen, &unseen);
  prepare(sizes.positions, &model.positions);
  prepare(sizes.factors, &model.factors);
  ENCORE_RETURN_IF_ERROR(workspace.Reserve(sizes.workspace));
  WritePages(workspace.data(), workspace.size_bytes());
  ENCORE_RETURN_IF_ERROR(prepare(sizes.narrow, &model.narrow));
  ENCORE_RETURN_IF_ERROR(prepare(sizes.states, &model.states));
  ENCORE_RETURN_IF_ERROR(prepare(sizes.floats.x, &x));
  ENCORE_RETURN_IF_ERROR(prepare(sizes.floats.hidden, &hidden));
  ENCORE_RETURN_IF_ERROR(prepare(sizes.floats.pooled, &pooled));
  ENCORE_RETURN_IF_ERROR(prepare(sizes.floats.projected, &projected));
  ENCORE_RETURN_IF_ERROR(prepare(sizes.floats.gathered, &gathered));
  ENCORE_RETURN_IF_ERROR(prepare(sizes.floats.residual, &residual));
  return prepare(sizes.floats.sums, &sums);
}

CallScratch* CallScratch::Of(Scratch* scratch) {
  if (scratch->parts_ == nullptr) scratch->parts_ = std::make_unique<CallScratch>();
  return scratch->parts_.get();
}

size_t ScratchSizes::bytes() const {
  return (texts + batch.sequences + 1 + unseen) * sizeof(size_t) + batch.tokens * sizeof(int32_t) +
         type_ids + positions * sizeof(uint32_t) + factors * sizeof(float) + workspace + narrow +
         states + floats.x + floats.hidden + floats.pooled + floats.projected + floats.gathered +
         floats.residual + floats.sums;
}

size_t CallScratch::size_bytes() const {
  return sizeof(CallScratch) + tokens.size_bytes() + MemoryOf(words) + joined.capacity() +
         pixels.capacity() + order.capacity() * sizeof(size_t) + ids.capacity() * sizeof(int32_t) +
         type_ids.capacity() + (starts.capacity() + unseen.capacity()) * sizeof(size_t) +
         workspace.size_bytes() + model.size_bytes() + x.size_bytes() + hidden.size_bytes() +
         pooled.size_bytes() + projected.size_bytes() + gathered.size_bytes() +
         residual.size_bytes() + sums.size_bytes();
}

std::unique_ptr<CallScratch> ScratchPool::TakeFrom(std::atomic<CallScratch*>* place) {
  if (place->load(std::memory_order_relaxed) == nullptr) return nullptr;
  std::unique_ptr<CallScratch> scratch(place->exchange(nullptr, std::memory_order_acquire));
  if (scratch) idle_bytes_.fetch_sub(scratch->idle_bytes, std::memory_order_relaxed);
  return scratch;
}

ScratchPool::Lease ScratchPool::Take() {
  for (std::atomic<CallScratch*>& place : idle_) {
    std::unique_ptr<CallScratch> scratch = TakeFrom(&place);
    if (scratch) return Lease(scratch.release(), GiveBack{this});
  }
  return Lease(new CallScratch(), GiveBack{this});
}

void ScratchPool::Trim() {
  for (std::atomic<CallScratch*>& place : idle_) TakeFrom(&place);
}

void ScratchPool::Put(std::unique_ptr<CallScratch> scratch) {
  scratch->idle_bytes = scratch->size_bytes();
  const size_t others = idle_bytes_.fetch_add(scratch->idle_bytes, std::memory_order_relaxed);
  for (std::atomic<CallScratch*>& place : idle_) {
    if (scratch->idle_bytes > max_idle_bytes_ || others > max_idle_bytes_ - scratch->idle_bytes) {
      break;
    }
    if (place.load(std::memory_order_relaxed) != nullptr) continue;
    CallScratch* none = nullptr;
    // Once it is in the place, another thread may have it already.
    CallScratch* const idle = scratch.release();
    if (place.compare_exchange_strong(none, idle, std::memory_order_release,
                                      std::memory_order_relaxed)) {
      return;
    }
    scratch.reset(idle);
  }
  idle_bytes_.fetch_sub(scratch->idle_bytes, std::memory_order_relaxed);
}

ScratchOfCall::ScratchOfCall(Scratch* own, ScratchPool* pool) : pooled_(nullptr, {pool}) {
  if (own == nullptr) {
    pooled_ = pool->Take();
    scratch_ = pooled_.get();
    return;
  }
  own_.emplace(*own);
  if (own_->status().ok()) scratch_ = CallScratch::Of(own);
}

}  // namespace internal
}  // namespace encore
