// SPDX-License-Identifier: Apache-2.0
//
// encore-ulp: tries every float (2^32 of them) on the elementwise functions of every SIMD target
// that this machine can run, and prints the largest error against double precision and where it is.
//
//   encore-ulp [function ...] [--step N]
//
// Functions: exp tanh relu gelu gelu_tanh silu, and the activations of a block, tile_relu tile_gelu
// tile_gelu_tanh tile_silu, whose errors are in ulps of x and not of the result, in whole and
// without half an ulp of the result; all of them by default, about a minute each.
// --step tries every N-th float only. Exit status: 0, 1 if an error exceeds what the library
// promises (tests/reference/accuracy.h, tile_accuracy.h), 2 for bad usage.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/kernels/activation.h"
#include "tests/reference/accuracy.h"
#include "tests/reference/tile_accuracy.h"
#include "tools/ulp_reference.h"

namespace {

using encore::reference::Accuracy;
using encore::reference::kTileAccuracies;
using encore::reference::TileAccuracy;
using encore::tool::UlpTarget;
using encore::tool::Worst;

int Usage(std::FILE* to, int exit_status) {
  std::fprintf(to, "usage: encore-ulp [function ...] [--step N]\nfunctions:");
  for (const Accuracy& function : encore::reference::kAccuracies) {
    std::fprintf(to, " %s", std::string(function.name).c_str());
  }
  for (const TileAccuracy& function : kTileAccuracies) {
    std::fprintf(to, " %s", std::string(function.name).c_str());
  }
  std::fprintf(to, "\n");
  return exit_status;
}

struct WorstTile {
  Worst whole;
  Worst early;
};

// Tries every `stride`-th chunk of the floats with bit patterns i * step, from chunk `first` on.
WorstTile TryTiles(const TileAccuracy& function, encore::internal::ActivationKernels::Tile kernel,
                   uint64_t step, uint64_t first, uint64_t stride) {
  constexpr uint64_t kChunk = encore::tool::kUlpChunk;
  const uint64_t total = (encore::tool::kAllFloats + step - 1) / step;
  WorstTile worst;
  std::vector<float> x(kChunk);
  std::vector<float> y(kChunk);
  for (uint64_t begin = first * kChunk; begin < total; begin += stride * kChunk) {
    const size_t count = static_cast<size_t>(std::min(kChunk, total - begin));
    for (size_t i = 0; i < count; ++i) {
      x[i] = std::bit_cast<float>(static_cast<uint32_t>((begin + i) * step));
    }
    y = x;
    kernel(y.data(), kChunk, 1, count);
    for (size_t i = 0; i < count; ++i) {
      const auto error =
          encore::reference::TileErrorOf(x[i], y[i], function.exact(static_cast<double>(x[i])));
      if (error.ulps > worst.whole.ulps) worst.whole = {error.ulps, x[i], y[i]};
      if (error.early_ulps > worst.early.ulps) worst.early = {error.early_ulps, x[i], y[i]};
    }
  }
  return worst;
}

// Prints a line for each target; false if a promise is broken.
bool TryTile(const TileAccuracy& function, uint64_t step) {
  bool kept = true;
  for (const std::string& name : encore::SupportedTargets()) {
    if (!encore::SetTarget(name).ok() || encore::ActiveTarget() != name) continue;
    const auto kernel = encore::internal::GetActivationKernels().*function.kernel;
    std::vector<WorstTile> parts(static_cast<size_t>(std::max(1, encore::UsableCores())));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < parts.size(); ++i) {
      threads.emplace_back(
          [&, i] { parts[i] = TryTiles(function, kernel, step, i, parts.size()); });
    }
    for (std::thread& thread : threads) thread.join();
    WorstTile worst = parts[0];
    for (const WorstTile& part : parts) {
      encore::tool::KeepWorse(worst.whole, part.whole);
      encore::tool::KeepWorse(worst.early, part.early);
    }
    const bool fma = encore::reference::TargetHasFma(name);
    const double promise = fma ? function.ulps : function.ulps_no_fma;
    const bool ok =
        worst.whole.ulps <= promise && (!fma || worst.early.ulps <= function.early_ulps);
    kept = kept && ok;
    std::printf("%-14s %-10s %8.4f %8.2f  f(%.9g) = %.9g; before rounding %.4f, f(%.9g)%s\n",
                std::string(function.name).c_str(), name.c_str(), worst.whole.ulps, promise,
                static_cast<double>(worst.whole.x), static_cast<double>(worst.whole.y),
                worst.early.ulps, static_cast<double>(worst.early.x), ok ? "" : "  BROKEN");
    std::fflush(stdout);
  }
  (void)encore::SetTarget("");
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t step = 1;
  std::vector<Accuracy> chosen;
  std::vector<TileAccuracy> chosen_tiles;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") return Usage(stdout, 0);
    if (argument == "--step") {
      step = ++i < argc ? std::strtoull(argv[i], nullptr, 10) : 0;
      if (step == 0) return Usage(stderr, 2);
      continue;
    }
    const auto tile =
        std::find_if(std::begin(kTileAccuracies), std::end(kTileAccuracies),
                     [&](const TileAccuracy& function) { return function.name == argument; });
    if (tile != std::end(kTileAccuracies)) {
      chosen_tiles.push_back(*tile);
      continue;
    }
    const auto found = std::find_if(
        std::begin(encore::reference::kAccuracies), std::end(encore::reference::kAccuracies),
        [&](const Accuracy& function) { return function.name == argument; });
    if (found == std::end(encore::reference::kAccuracies)) return Usage(stderr, 2);
    chosen.push_back(*found);
  }
  if (chosen.empty() && chosen_tiles.empty()) {
    chosen_tiles.assign(std::begin(kTileAccuracies), std::end(kTileAccuracies));
    chosen.assign(std::begin(encore::reference::kAccuracies),
                  std::end(encore::reference::kAccuracies));
  }

  const std::vector<UlpTarget> targets = encore::tool::AllUlpTargets();
  bool kept = true;
  std::printf("%-10s %-10s %8s %8s  %s\n", "function", "target", "ulp", "promise", "at");
  for (const Accuracy& function : chosen) {
    const std::vector<Worst> worst = encore::tool::LargestErrors(function, targets, step);
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
  for (const TileAccuracy& function : chosen_tiles) kept = TryTile(function, step) && kept;
  return kept ? 0 : 1;
}
