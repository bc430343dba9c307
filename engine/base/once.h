// SPDX-License-Identifier: Apache-2.0
//
// Once: what is made when it is first asked for, and then stays. In place of a function's static
// variable, which differs in two ways:
// - A destructor would run at exit(), when other threads may still be in a call, so none ever runs.
//   What lies here lies in the library's own memory, which goes when a shared library is unloaded.
// - A child of fork() made while another thread was at it would wait for that thread, which the
//   child has not. Here the child makes it anew.

#ifndef ENCORE_ENGINE_BASE_ONCE_H_
#define ENCORE_ENGINE_BASE_ONCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace encore::inline v0_1::internal {

// A number that another process of the same memory has not: it changes in the child at each fork()
// from the library's loading on. Cheap, and fit to be called from any thread. Defined in
// engine/platform/fork.cc.
uint32_t ProcessNumber();

// A static variable with constinit. T should own no memory outside of itself, which nobody would
// free.
template <typename T>
class Once {
 public:
  // make() returns the T; by the first thread that comes, while others wait. What it throws goes to
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

#endif  // ENCORE_ENGINE_BASE_ONCE_H_
