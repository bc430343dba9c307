// SPDX-License-Identifier: Apache-2.0
//
// The command's operator new, which counts. The forms that are not here end in these. malloc itself
// stays the C library's: what uses that alone, such as buffers for matrices, is not counted.

#include "bench/measure/allocations.h"

#include <cstdlib>
#include <new>

#if defined(__GNUC__) && !defined(__clang__)
// GCC sees free meet memory of operator new once it has inlined only one of the two.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace {

template <typename Allocate>
void* Counted(const Allocate& allocate) {
  encore::bench::allocations_made.fetch_add(1, std::memory_order_relaxed);
  for (;;) {
    if (void* const memory = allocate()) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

void* operator new(size_t n) {
  return Counted([n] { return std::malloc(n == 0 ? 1 : n); });
}
void* operator new(size_t n, std::align_val_t alignment) {
  const auto a = static_cast<size_t>(alignment);
  return Counted([n, a] { return std::aligned_alloc(a, (n + a - 1) / a * a); });
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
