// SPDX-License-Identifier: Apache-2.0
//
// Once: a value that is made at first use and never destroyed. A function's static variable
// differs in two ways:
// - Its destructor runs at exit(), when other threads may still be in a call. The value here is in
//   the library's own memory, which is freed when a shared library is unloaded.
// - A child of fork() made while another thread constructs it waits for that thread, which the
//   child does not have. Here the child makes the value anew.

#ifndef ENCORE_ENGINE_PLATFORM_ONCE_H_
#define ENCORE_ENGINE_PLATFORM_ONCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "engine/platform/fork.h"

namespace encore::inline v0_1::internal {

// A static variable with constinit. T should own no memory outside itself: nobody frees it.
template <typename T>
class Once {
 public:
  // The first thread calls make(), which returns the T, while others wait. An exception goes to
  // that thread, and the next one tries again.
  template <typename Make>
  const T& Get(const Make& make) {
    if (state_.load(std::memory_order_acquire) != kMade) Fill(make);
    return *std::launder(reinterpret_cast<const T*>(memory_));
  }

 private:
  static constexpr uint32_t kNone = 0;
  static constexpr uint32_t kMade = 1;
  static constexpr uint32_t kFirstProcess = 2;  // from here on: in the making, in this process

  template <typename Make>
  void Fill(const Make& make) {
    const uint32_t making = kFirstProcess + ProcessNumber();
    uint32_t state = state_.load(std::memory_order_acquire);
    while (state != kMade) {
      if (state == making) {
        state_.wait(state, std::memory_order_acquire);
        state = state_.load(std::memory_order_acquire);
      } else if (state_.compare_exchange_weak(state, making, std::memory_order_acquire)) {
        try {
          ::new (static_cast<void*>(memory_)) T(make());
        } catch (...) {
          Leave(kNone);
          throw;
        }
        Leave(kMade);
        return;
      }
    }
  }

  void Leave(uint32_t state) {
    state_.store(state, std::memory_order_seq_cst);
    state_.notify_all();
  }

  std::atomic<uint32_t> state_{kNone};
  alignas(T) std::byte memory_[sizeof(T)] = {};
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_ONCE_H_
