// SPDX-License-Identifier: Apache-2.0
//
// The handler that operator new calls before it tries again.

#include "tools/serve/memory.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <new>
#include <thread>

namespace encore::serve {
namespace {

constexpr size_t kReserve = size_t{1} << 20;  // nodes of lists, and the like, of all requests
constexpr std::chrono::milliseconds kPause(1);

std::atomic<char*> reserve = nullptr;
thread_local NoMemory on_this_thread = NoMemory::kThrow;

void OnNoMemory() {
  if (on_this_thread == NoMemory::kThrow) throw std::bad_alloc();
  if (char* const freed = reserve.exchange(nullptr)) {
    delete[] freed;
  } else {
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

MemoryScope::MemoryScope(NoMemory then) : before_(on_this_thread) { on_this_thread = then; }

MemoryScope::~MemoryScope() { on_this_thread = before_; }

void InstallNoMemoryHandler() {
  if (reserve == nullptr) reserve = new char[kReserve];
  std::set_new_handler(OnNoMemory);
}

}  // namespace encore::serve
