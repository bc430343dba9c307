// SPDX-License-Identifier: Apache-2.0
//
// operator new and delete in all their forms, by a function of the program's own. One file of such
// a program includes it and defines AllocateForNew.

#ifndef ENCORE_TESTS_SUPPORT_OWN_NEW_H_
#define ENCORE_TESTS_SUPPORT_OWN_NEW_H_

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__GNUC__) && !defined(__clang__)
// GCC sees free meet memory of operator new once it has inlined only one of the two.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace {

// Null: there is no memory. Alignment 0: that of malloc.
void* AllocateForNew(size_t size, size_t alignment) noexcept;

void* PlainMemory(size_t size, size_t alignment) noexcept {
  if (alignment == 0) return std::malloc(size == 0 ? 1 : size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* OrThrow(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

size_t ToSize(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

}  // namespace

// Every form: those left out would be the sanitizers' own.
void* operator new(size_t n) { return OrThrow(AllocateForNew(n, 0)); }
void* operator new[](size_t n) { return OrThrow(AllocateForNew(n, 0)); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return AllocateForNew(n, 0); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return AllocateForNew(n, 0); }
void* operator new(size_t n, std::align_val_t a) { return OrThrow(AllocateForNew(n, ToSize(a))); }
void* operator new[](size_t n, std::align_val_t a) { return OrThrow(AllocateForNew(n, ToSize(a))); }
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return AllocateForNew(n, ToSize(a));
}
void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return AllocateForNew(n, ToSize(a));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}

#endif  // ENCORE_TESTS_SUPPORT_OWN_NEW_H_
