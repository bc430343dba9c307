// SPDX-License-Identifier: Apache-2.0
//
// Waiting for another thread: a bounded time in a loop, which answers in nanoseconds, and then
// asleep, which leaves the core to others. The loop does not yield: two threads that yield to each
// other on one core look to the system like one, and it would leave them there.

#ifndef ENCORE_ENGINE_PLATFORM_SPIN_H_
#define ENCORE_ENGINE_PLATFORM_SPIN_H_

#include <atomic>
#include <chrono>

#if defined(_M_X64)
#include <immintrin.h>
#endif

namespace encore::inline v0_1::internal {

inline void CpuRelax() {
#if defined(_M_X64)
  _mm_pause();
#elif defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether ready() became true within about `time`.
template <typename Ready>
bool SpinUntil(const Ready& ready, std::chrono::microseconds time) {
  std::chrono::steady_clock::time_point deadline{};
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      CpuRelax();
    }
    // The clock is read late, since most waits are shorter than reading it.
    const auto now = std::chrono::steady_clock::now();
    if (deadline == std::chrono::steady_clock::time_point{}) deadline = now + time;
    if (now >= deadline) return false;
  }
}

// How long a thread in a call looks for what it waits for before it sleeps: longer than a short
// stage is uneven, shorter than what anyone would notice as burnt time. Waking up through the
// kernel costs 5-50 us.
inline constexpr std::chrono::microseconds kStageSpin{50};

// Sets `word` and wakes all who wait for it to change. Sequentially consistent: std::atomic's
// notify looks at a count of waiters, and must not have looked before its store was seen, or a
// thread that is just going to sleep never wakes.
template <typename T>
void StoreAndWake(std::atomic<T>& word, T value) {
  word.store(value, std::memory_order_seq_cst);
  word.notify_all();
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_SPIN_H_
