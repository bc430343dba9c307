// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: the published hashes, on every target with FMA.

#include <cstdio>
#include <string>

#include "tests/reference/accuracy.h"
#include "tests/reference/golden_hashes.h"
#include "tools/encore/verify_checks.h"

namespace encore::tool {

void VerifyPublished(const VerifyContext& context) {
  ForEachVerifyTarget(context, [&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    for (const reference::GoldenHash& golden : reference::kGoldenHashes) {
      const uint64_t hash = reference::ComputeGoldenHash(golden.name);
      char detail[80];
      std::snprintf(detail, sizeof(detail), "found %016llx, wanted %016llx",
                    static_cast<unsigned long long>(hash),
                    static_cast<unsigned long long>(golden.hash));
      context.report.Add({.section = VerifySection::kPublished,
                          .check = std::string(golden.name),
                          .target = target,
                          .kept = hash == golden.hash,
                          .hash = hash,
                          .detail = hash == golden.hash ? "" : detail});
    }
  });
}

}  // namespace encore::tool
