// SPDX-License-Identifier: Apache-2.0
//
// An allocator that counts, for a program whose tests count allocations: operator new in all its
// forms and, with glibc and no sanitizer, malloc and its relatives too. One file of such a program
// includes it, and is among encore_own_allocators of tests/CMakeLists.txt.

#ifndef ENCORE_TESTS_SUPPORT_COUNTED_ALLOCATIONS_H_
#define ENCORE_TESTS_SUPPORT_COUNTED_ALLOCATIONS_H_

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "tests/support/own_new.h"
#include "tests/support/sanitizers.h"

namespace {
std::atomic<size_t> operator_news{0};
std::atomic<size_t> mallocs{0};
}  // namespace

#if defined(__GLIBC__) && !ENCORE_TEST_ASAN && !ENCORE_TEST_TSAN
#define ENCORE_TEST_COUNTS_MALLOC 1
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  ++mallocs;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++mallocs;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  ++mallocs;
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  ++mallocs;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  ++mallocs;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  ++mallocs;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#else
#define ENCORE_TEST_COUNTS_MALLOC 0
#endif

namespace {
void* AllocateForNew(size_t size, size_t alignment) noexcept {
  ++operator_news;
  return PlainMemory(size, alignment);
}
}  // namespace

namespace encore {
namespace {

struct Counts {
  size_t operator_news;
  size_t mallocs;
};

template <typename F>
Counts CountAllocations(const F& body) {
  const Counts before = {::operator_news, ::mallocs};
  body();
  return {::operator_news - before.operator_news, ::mallocs - before.mallocs};
}

}  // namespace
}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_COUNTED_ALLOCATIONS_H_
