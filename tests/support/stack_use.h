// SPDX-License-Identifier: Apache-2.0
//
// How much of a thread's stack a call takes, and calls on threads that have little of it.

#ifndef ENCORE_TESTS_SUPPORT_STACK_USE_H_
#define ENCORE_TESTS_SUPPORT_STACK_USE_H_

#if defined(__linux__)
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>

#include "gtest/gtest.h"

namespace encore {

// Calls it on a thread of its own whose stack has so many bytes, a multiple of the page, with a
// page below that ends the process when it is touched. Returns how many bytes of the stack were
// touched.
inline size_t StackOf(const std::function<void()>& call, size_t stack = size_t{1} << 20) {
  constexpr unsigned char kUntouched = 0xA5;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory =
      mmap(nullptr, page + stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  if (memory == MAP_FAILED) return 0;
  auto* const begin = static_cast<unsigned char*>(memory) + page;
  EXPECT_EQ(mprotect(memory, page, PROT_NONE), 0);
  std::memset(begin, kUntouched, stack);
  pthread_attr_t attributes;
  EXPECT_EQ(pthread_attr_init(&attributes), 0);
  EXPECT_EQ(pthread_attr_setstack(&attributes, begin, stack), 0);
  pthread_t thread;
  const auto run = [](void* context) -> void* {
    (*static_cast<const std::function<void()>*>(context))();
    return nullptr;
  };
  EXPECT_EQ(
      pthread_create(&thread, &attributes, run, const_cast<void*>(static_cast<const void*>(&call))),
      0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  // It grows downwards.
  const unsigned char* const touched =
      std::find_if(begin, begin + stack, [](unsigned char b) { return b != kUntouched; });
  const auto taken = static_cast<size_t>(begin + stack - touched);
  munmap(memory, page + stack);
  return taken;
}

}  // namespace encore
#endif

#endif  // ENCORE_TESTS_SUPPORT_STACK_USE_H_
