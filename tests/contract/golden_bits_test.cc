// SPDX-License-Identifier: Apache-2.0
//
// The numeric contract across machines, compilers and time: every SIMD target with FMA gives the
// published hashes (reference/golden_hashes.h).

#include <cstdint>
#include <cstdio>
#include <ios>
#include <string>

#include "gtest/gtest.h"
#include "reference/accuracy.h"
#include "reference/golden_hashes.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

TEST(GoldenBits, EveryTargetWithFmaGivesThem) {
  std::string with_fma;
  ForEachTarget([&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    with_fma += " " + target;
    for (const reference::GoldenHash& golden : reference::kGoldenHashes) {
      const uint64_t hash = reference::ComputeGoldenHash(golden.name);
      EXPECT_EQ(hash, golden.hash) << golden.name << " gave 0x" << std::hex << hash;
    }
  });
  // Elsewhere (old x86, or a build of portable code alone) there is nothing to compare.
  std::printf("targets with FMA:%s\n", with_fma.empty() ? " none" : with_fma.c_str());
}

}  // namespace
}  // namespace encore
