// SPDX-License-Identifier: Apache-2.0
//
// Taking and giving back scratch.

#include "engine/text/scratch.h"

#include <new>

#include "engine/base/int_math.h"
#include "engine/base/out_of_memory.h"

namespace encore::inline v0_1::internal {

Status FloatBuffer::Reserve(size_t count, size_t element) {
  size_t bytes = 0;
  if (!CheckedMul(count, element, &bytes)) return OutOfMemory();
  if (bytes <= memory_.size_bytes()) return {};
  // A little more than wanted, so that texts of slowly rising lengths do not take new memory each.
  size_t more = 0;
  if (!CheckedAdd(bytes, bytes / 4, &more)) more = bytes;
  return memory_.Reserve(more);
}

size_t Scratch::size_bytes() const {
  return tokens.size_bytes() + order.capacity() * sizeof(size_t) +
         ids.capacity() * sizeof(int32_t) + type_ids.capacity() +
         starts.capacity() * sizeof(size_t) + workspace.size_bytes() + x.size_bytes() +
         hidden.size_bytes() + pooled.size_bytes() + projected.size_bytes() + sums.size_bytes();
}

ScratchPool::Lease::Lease(ScratchPool* pool) : pool_(pool) {
  {
    const std::lock_guard lock(pool_->mutex_);
    if (!pool_->idle_.empty()) {
      scratch_ = std::move(pool_->idle_.back());
      pool_->idle_.pop_back();
      pool_->idle_bytes_ -= scratch_->size_bytes();
    }
  }
  if (!scratch_) scratch_ = std::make_unique<Scratch>();
}

ScratchPool::Lease::~Lease() {
  const size_t bytes = scratch_->size_bytes();
  const std::lock_guard lock(pool_->mutex_);
  if (bytes > kMaxIdleBytes - pool_->idle_bytes_) return;
  try {
    pool_->idle_.push_back(std::move(scratch_));
    pool_->idle_bytes_ += bytes;
  } catch (const std::bad_alloc&) {
    scratch_.reset();
  }
}

}  // namespace encore::internal
