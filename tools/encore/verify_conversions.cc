// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: conversions to bf16 and f16 and back, over some millions of floats or all of
// them (tests/exhaustive/conversions.h).

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/exhaustive/conversions.h"
#include "tools/encore/verify_checks.h"

namespace encore::tool {

void VerifyConversions(const VerifyContext& context) {
  const std::vector<Conversion> conversions = AllConversions();
  for (size_t i = 0; i < conversions.size(); ++i) {
    const Conversion& conversion = conversions[i];
    const auto advance = [&](double share) {
      context.progress.Advance((static_cast<double>(i) + share) /
                               static_cast<double>(conversions.size()));
    };
    const uint64_t floats = conversion.Floats(context.step);
    const Count wrong = WrongOf(conversion, context.step, advance);
    char detail[64] = "";
    if (wrong.times != 0) {
      std::snprintf(detail, sizeof(detail), "%llu wrong, first at 0x%08x",
                    static_cast<unsigned long long>(wrong.times), wrong.first_bits);
    }
    context.report.Add({.section = VerifySection::kConversions,
                        .check = conversion.what,
                        .target = conversion.target,
                        .kept = wrong.times == 0,
                        .observed = static_cast<double>(floats),
                        .step = conversion.Step(context.step),
                        .detail = detail});
  }
}

}  // namespace encore::tool
