// SPDX-License-Identifier: Apache-2.0
//
// Chunks of floats that all usable cores share.

#ifndef ENCORE_REFERENCE_EXHAUSTIVE_WALK_H_
#define ENCORE_REFERENCE_EXHAUSTIVE_WALK_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "encore/cpu.h"

namespace encore::tool {

inline constexpr uint64_t kAllFloats = uint64_t{1} << 32;

// Called from the calling thread with what is done, in [0, 1]; may be empty.
using OnProgress = std::function<void(double)>;

// How often something happened, and the first time in the order of bits.
struct Count {
  uint64_t times = 0;
  uint32_t first_bits = UINT32_MAX;

  void Add(const Count& other) {
    times += other.times;
    first_bits = std::min(first_bits, other.first_bits);
  }
};

// Calls try_chunk(state, chunk) for every chunk below `chunks`. Each core has a state of its own,
// which make() gave; returns them all.
template <class Make, class TryChunk>
auto WalkChunks(uint64_t chunks, const Make& make, const TryChunk& try_chunk,
                const OnProgress& progress = {}) {
  constexpr uint64_t kAtOnce = 16;
  std::vector<decltype(make())> states;
  for (int core = 0; core < UsableCores(); ++core) states.push_back(make());
  std::atomic<uint64_t> next{0};
  const auto work = [&](size_t core) {
    for (;;) {
      const uint64_t begin = next.fetch_add(kAtOnce, std::memory_order_relaxed);
      if (begin >= chunks) return;
      const uint64_t end = std::min(chunks, begin + kAtOnce);
      for (uint64_t c = begin; c < end; ++c) try_chunk(states[core], c);
      if (core == 0 && progress) progress(static_cast<double>(end) / static_cast<double>(chunks));
    }
  };
  // Should a thread not start, the others take no more chunks.
  struct Team {
    ~Team() {
      next.store(chunks, std::memory_order_relaxed);
      for (std::thread& thread : threads) thread.join();
    }
    std::atomic<uint64_t>& next;
    uint64_t chunks;
    std::vector<std::thread> threads{};
  };
  {
    Team team{next, chunks};
    for (size_t core = 1; core < states.size(); ++core) team.threads.emplace_back(work, core);
    work(0);
  }
  return states;
}

}  // namespace encore::tool

#endif  // ENCORE_REFERENCE_EXHAUSTIVE_WALK_H_
