// SPDX-License-Identifier: Apache-2.0
//
// Memory right before or right behind a page that cannot be read, for tests that must not touch a
// byte outside: also what assembler and the SIMD code of a Release build touch. A fault ends the
// test with the sentence of FaultNote. Unix only.

#ifndef ENCORE_TESTS_CONTRACT_GUARD_PAGES_H_
#define ENCORE_TESTS_CONTRACT_GUARD_PAGES_H_

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

namespace encore {

// Which side of the memory the unreadable page is on.
enum class GuardSide { kEnd, kStart };

// Null if the system has no more mappings. The bytes start as 0x7F, a large number.
inline void* MapGuarded(size_t bytes, size_t alignment, GuardSide side) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // At the end as near to the page as the alignment lets it.
  const size_t used = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  const size_t body = (used + page - 1) / page * page;
  void* const map = mmap(nullptr, body + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  char* const start = static_cast<char*>(map) + page;
  if (mprotect(start, body, PROT_READ | PROT_WRITE) != 0) return nullptr;
  std::memset(start, 0x7F, body);
  return side == GuardSide::kEnd ? start + body - used : start;
}

// Takes what MapGuarded gave for as many bytes, or null.
inline void UnmapGuarded(void* memory, size_t bytes, size_t alignment) {
  if (memory == nullptr) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t used = (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  const size_t body = (used + page - 1) / page * page;
  char* const start =
      reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(memory) / page * page) - page;
  munmap(start, body + 2 * page);
}

// An array of exactly so many elements.
template <typename T>
class GuardedArray {
 public:
  GuardedArray(size_t count, GuardSide side)
      : data_(static_cast<T*>(MapGuarded(count * sizeof(T), alignof(T), side))), count_(count) {
    if (data_ == nullptr) std::abort();
  }
  GuardedArray(std::span<const T> values, GuardSide side) : GuardedArray(values.size(), side) {
    std::copy(values.begin(), values.end(), data_);
  }
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;
  ~GuardedArray() { UnmapGuarded(data_, count_ * sizeof(T), alignof(T)); }

  T* data() const { return data_; }
  size_t size() const { return count_; }
  std::span<T> span() const { return {data_, count_}; }

 private:
  T* data_;
  size_t count_;
};

// While one lives, a fault is told with what was last noted, and then as ever.
class FaultNote {
 public:
  FaultNote() {
    struct sigaction action = {};
    action.sa_sigaction = Tell;
    action.sa_flags = SA_SIGINFO | SA_RESETHAND;
    sigaction(SIGSEGV, &action, &before_);
    sigaction(SIGBUS, &action, &before_bus_);
  }
  ~FaultNote() {
    sigaction(SIGSEGV, &before_, nullptr);
    sigaction(SIGBUS, &before_bus_, nullptr);
  }
  FaultNote(const FaultNote&) = delete;
  FaultNote& operator=(const FaultNote&) = delete;

  void Set(const std::string& note) { std::snprintf(text_, sizeof(text_), "%s\n", note.c_str()); }

 private:
  static void Tell(int signal, siginfo_t*, void*) {
    static constexpr char kSentence[] = "memory outside was touched: ";
    (void)!write(2, kSentence, sizeof(kSentence) - 1);
    (void)!write(2, text_, strlen(text_));
    raise(signal);
  }
  static inline char text_[1024] = "(nothing noted)\n";
  struct sigaction before_ = {};
  struct sigaction before_bus_ = {};
};

}  // namespace encore

#endif  // ENCORE_TESTS_CONTRACT_GUARD_PAGES_H_
