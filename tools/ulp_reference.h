// SPDX-License-Identifier: Apache-2.0
//
// The search for the largest error of an elementwise function over many floats or all of them, on
// every SIMD target that this machine can run, against double precision: for `encore-ulp` and
// `encore verify`. Not here: what is promised (tests/reference/accuracy.h).

#ifndef ENCORE_TOOLS_ULP_REFERENCE_H_
#define ENCORE_TOOLS_ULP_REFERENCE_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "encore/cpu.h"
#include "engine/kernels/elementwise.h"
#include "tests/reference/accuracy.h"

namespace encore::tool {

inline constexpr uint64_t kAllFloats = uint64_t{1} << 32;
inline constexpr size_t kUlpChunk = 4096;

struct UlpTarget {
  std::string name;
  const internal::ElementwiseKernels* kernels;
};

struct Worst {
  double ulps = -1;
  float x = 0;
  float y = 0;
};

inline void KeepWorse(Worst& worst, const Worst& other) {
  // The lowest x of equals, so that the order of threads does not show.
  if (other.ulps > worst.ulps || (other.ulps == worst.ulps && other.x < worst.x)) worst = other;
}

// The kernels of every target; a pointer to them stays good when the active target changes.
inline std::vector<UlpTarget> AllUlpTargets() {
  std::vector<UlpTarget> targets;
  for (const std::string& name : SupportedTargets()) {
    if (!SetTarget(name).ok() || ActiveTarget() != name) continue;
    targets.push_back({name, &internal::GetElementwiseKernels()});
  }
  (void)SetTarget("");
  return targets;
}

// Tries x[0 .. count), count <= kUlpChunk; worst has one entry a target.
inline void TryFloats(const reference::Accuracy& function, const std::vector<UlpTarget>& targets,
                      const float* x, size_t count, std::vector<Worst>& worst) {
  alignas(64) float y[2][kUlpChunk];
  double exact[kUlpChunk];
  for (size_t i = 0; i < count; ++i) exact[i] = function.exact(static_cast<double>(x[i]));
  Worst last;
  for (size_t t = 0; t < targets.size(); ++t) {
    float* mine = y[t % 2];
    (targets[t].kernels->*function.kernel)(x, mine, count);
    // Most targets agree to the bit, and then so do their errors.
    if (t == 0 || std::memcmp(mine, y[(t - 1) % 2], count * sizeof(float)) != 0) {
      last = Worst{};
      for (size_t i = 0; i < count; ++i) {
        const double ulps = reference::UlpError(mine[i], exact[i]);
        if (ulps > last.ulps) last = Worst{ulps, x[i], mine[i]};
      }
    }
    KeepWorse(worst[t], last);
  }
}

// Tries every step-th float and those of `extra` on all usable cores; one entry a target.
// progress(share), if given, is called from the calling thread with what is done, in [0, 1].
inline std::vector<Worst> LargestErrors(const reference::Accuracy& function,
                                        const std::vector<UlpTarget>& targets, uint64_t step,
                                        std::span<const float> extra = {},
                                        const std::function<void(double)>& progress = {}) {
  const uint64_t total = (kAllFloats + step - 1) / step;
  std::vector<Worst> worst(targets.size());
  for (size_t i = 0; i < extra.size(); i += kUlpChunk) {
    TryFloats(function, targets, extra.data() + i, std::min(kUlpChunk, extra.size() - i), worst);
  }
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  const auto work = [&](bool reports) {
    std::vector<Worst> mine(targets.size());
    alignas(64) float x[kUlpChunk];
    for (;;) {
      const uint64_t begin = next.fetch_add(kUlpChunk, std::memory_order_relaxed);
      if (begin >= total) break;
      const size_t count = static_cast<size_t>(std::min<uint64_t>(kUlpChunk, total - begin));
      for (size_t i = 0; i < count; ++i) {
        x[i] = std::bit_cast<float>(static_cast<uint32_t>((begin + i) * step));
      }
      TryFloats(function, targets, x, count, mine);
      if (reports && progress) progress(static_cast<double>(begin) / static_cast<double>(total));
    }
    const std::lock_guard lock(mutex);
    for (size_t t = 0; t < targets.size(); ++t) KeepWorse(worst[t], mine[t]);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < UsableCores(); ++i) threads.emplace_back(work, false);
  work(true);
  for (std::thread& thread : threads) thread.join();
  return worst;
}

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ULP_REFERENCE_H_
