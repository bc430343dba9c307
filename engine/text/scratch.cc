// SPDX-License-Identifier: Apache-2.0
//
// Taking and giving back scratch.

#include "engine/text/scratch.h"

#include "engine/base/guarded.h"
#include "engine/base/int_math.h"

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
         (starts.capacity() + unseen.capacity()) * sizeof(size_t) + workspace.size_bytes() +
         x.size_bytes() + hidden.size_bytes() + pooled.size_bytes() + projected.size_bytes() +
         gathered.size_bytes() + residual.size_bytes() + sums.size_bytes();
}

ScratchPool::~ScratchPool() {
  for (const std::atomic<Scratch*>& place : idle_) delete place.load(std::memory_order_relaxed);
}

ScratchPool::Lease ScratchPool::Take() {
  for (std::atomic<Scratch*>& place : idle_) {
    if (place.load(std::memory_order_relaxed) == nullptr) continue;
    Lease scratch(place.exchange(nullptr, std::memory_order_acquire), GiveBack{this});
    if (!scratch) continue;
    idle_bytes_.fetch_sub(scratch->idle_bytes, std::memory_order_relaxed);
    return scratch;
  }
  return Lease(new Scratch(), GiveBack{this});
}

void ScratchPool::Put(std::unique_ptr<Scratch> scratch) {
  scratch->idle_bytes = scratch->size_bytes();
  const size_t others = idle_bytes_.fetch_add(scratch->idle_bytes, std::memory_order_relaxed);
  for (std::atomic<Scratch*>& place : idle_) {
    if (scratch->idle_bytes > kMaxIdleBytes || others > kMaxIdleBytes - scratch->idle_bytes) break;
    if (place.load(std::memory_order_relaxed) != nullptr) continue;
    Scratch* none = nullptr;
    // Once it is in the place, another thread may have it already.
    Scratch* const idle = scratch.release();
    if (place.compare_exchange_strong(none, idle, std::memory_order_release,
                                      std::memory_order_relaxed)) {
      return;
    }
    scratch.reset(idle);
  }
  idle_bytes_.fetch_sub(scratch->idle_bytes, std::memory_order_relaxed);
}

}  // namespace encore::internal
