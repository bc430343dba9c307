// SPDX-License-Identifier: Apache-2.0
//
// Compares the published hashes with what encore gives as a part of this project. Exits with 1 if
// one differs, on any SIMD target with FMA.

#include <cstdio>
#include <string>

#include "encore/cpu.h"
#include "reference/accuracy.h"
#include "reference/golden_hashes.h"

int main() {
  int different = 0;
  int compared = 0;
  for (const std::string& target : encore::SupportedTargets()) {
    if (!encore::SetTarget(target).ok() || !encore::reference::TargetHasFma(target)) continue;
    for (const encore::reference::GoldenHash& golden : encore::reference::kGoldenHashes) {
      ++compared;
      if (encore::reference::ComputeGoldenHash(golden.name) == golden.hash) continue;
      std::printf("%s: %s differs\n", target.c_str(), std::string(golden.name).c_str());
      ++different;
    }
  }
  std::printf("%d of %d hashes differ\n", different, compared);
  return different == 0 ? 0 : 1;
}
