// SPDX-License-Identifier: Apache-2.0
//
// encore-ulp: tries every float (2^32 of them) on the elementwise functions of every SIMD target
// that this machine can run, and prints the largest error against double precision and where it is.
//
//   encore-ulp [function ...] [--step N]
//
// Functions: exp tanh relu gelu gelu_tanh silu; all of them by default, about a minute each.
// --step tries every N-th float only. Exit status: 0, 1 if an error exceeds what the library
// promises (tests/reference/accuracy.h), 2 for bad usage.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "encore/cpu.h"
#include "engine/kernels/elementwise.h"
#include "tests/reference/accuracy.h"

namespace {

using encore::internal::ElementwiseKernels;
using encore::reference::Accuracy;

constexpr uint64_t kAllFloats = uint64_t{1} << 32;
constexpr size_t kChunk = 4096;

struct Target {
  std::string name;
  const ElementwiseKernels* kernels;
};

struct Worst {
  double ulps = -1;
  float x = 0;
  float y = 0;
};

void KeepWorse(Worst& worst, const Worst& other) {
  // The lowest x of equals, so that the order of threads does not show.
  if (other.ulps > worst.ulps || (other.ulps == worst.ulps && other.x < worst.x)) worst = other;
}

// Tries the floats with bit patterns i * step for i in [begin, begin + count), count <= kChunk.
void TryChunk(const Accuracy& function, const std::vector<Target>& targets, uint64_t begin,
              size_t count, uint64_t step, std::vector<Worst>& worst) {
  alignas(64) float x[kChunk];
  alignas(64) float y[2][kChunk];
  double exact[kChunk];
  for (size_t i = 0; i < count; ++i) {
    x[i] = std::bit_cast<float>(static_cast<uint32_t>((begin + i) * step));
    exact[i] = function.exact(static_cast<double>(x[i]));
  }
  Worst last;
  for (size_t t = 0; t < targets.size(); ++t) {
    float* mine = y[t % 2];
    (targets[t].kernels->*function.kernel)(x, mine, count);
    // Most targets agree to the bit, and then so do their errors.
    if (t == 0 || std::memcmp(mine, y[(t - 1) % 2], count * sizeof(float)) != 0) {
      last = Worst{};
      for (size_t i = 0; i < count; ++i) {
        const double ulps = encore::reference::UlpError(mine[i], exact[i]);
        if (ulps > last.ulps) last = Worst{ulps, x[i], mine[i]};
      }
    }
    KeepWorse(worst[t], last);
  }
}

std::vector<Worst> TryAll(const Accuracy& function, const std::vector<Target>& targets,
                          uint64_t step) {
  const uint64_t total = (kAllFloats + step - 1) / step;
  std::vector<Worst> worst(targets.size());
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    std::vector<Worst> mine(targets.size());
    for (;;) {
      const uint64_t begin = next.fetch_add(kChunk, std::memory_order_relaxed);
      if (begin >= total) break;
      const size_t count = static_cast<size_t>(std::min<uint64_t>(kChunk, total - begin));
      TryChunk(function, targets, begin, count, step, mine);
    }
    const std::lock_guard lock(mutex);
    for (size_t t = 0; t < targets.size(); ++t) KeepWorse(worst[t], mine[t]);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < encore::UsableCores(); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return worst;
}

// The kernels of every target; a pointer to them stays good when the active target changes.
std::vector<Target> AllTargets() {
  std::vector<Target> targets;
  for (const std::string& name : encore::SupportedTargets()) {
    if (!encore::SetTarget(name).ok() || encore::ActiveTarget() != name) continue;
    targets.push_back({name, &encore::internal::GetElementwiseKernels()});
  }
  (void)encore::SetTarget("");
  return targets;
}

int Usage(std::FILE* to, int exit_status) {
  std::fprintf(to, "usage: encore-ulp [function ...] [--step N]\nfunctions:");
  for (const Accuracy& function : encore::reference::kAccuracies) {
    std::fprintf(to, " %s", std::string(function.name).c_str());
  }
  std::fprintf(to, "\n");
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t step = 1;
  std::vector<Accuracy> chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") return Usage(stdout, 0);
    if (argument == "--step") {
      step = ++i < argc ? std::strtoull(argv[i], nullptr, 10) : 0;
      if (step == 0) return Usage(stderr, 2);
      continue;
    }
    const auto found = std::find_if(
        std::begin(encore::reference::kAccuracies), std::end(encore::reference::kAccuracies),
        [&](const Accuracy& function) { return function.name == argument; });
    if (found == std::end(encore::reference::kAccuracies)) return Usage(stderr, 2);
    chosen.push_back(*found);
  }
  if (chosen.empty()) {
    chosen.assign(std::begin(encore::reference::kAccuracies),
                  std::end(encore::reference::kAccuracies));
  }

  const std::vector<Target> targets = AllTargets();
  bool kept = true;
  std::printf("%-10s %-10s %8s %8s  %s\n", "function", "target", "ulp", "promise", "at");
  for (const Accuracy& function : chosen) {
    const std::vector<Worst> worst = TryAll(function, targets, step);
    for (size_t t = 0; t < targets.size(); ++t) {
      const bool fma = encore::reference::TargetHasFma(targets[t].name);
      const double promise = fma ? function.ulps : function.ulps_no_fma;
      const bool ok = worst[t].ulps <= promise;
      kept = kept && ok;
      std::printf("%-10s %-10s %8.4f %8.2f  f(%.9g = %a) = %.9g%s\n",
                  std::string(function.name).c_str(), targets[t].name.c_str(), worst[t].ulps,
                  promise, static_cast<double>(worst[t].x), static_cast<double>(worst[t].x),
                  static_cast<double>(worst[t].y), ok ? "" : "  BROKEN");
      std::fflush(stdout);
    }
  }
  return kept ? 0 : 1;
}
