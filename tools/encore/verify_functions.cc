// SPDX-License-Identifier: Apache-2.0
//
// `encore verify`: the largest errors of the elementwise functions, over some millions of floats or
// all of them.

#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "tests/reference/accuracy.h"
#include "tools/encore/verify_checks.h"
#include "tools/ulp_reference.h"

namespace encore::tool {
namespace {

constexpr double kSecondsQuick = 0.5;
constexpr double kSecondsFull = 60;

// Where trying all floats has found the largest errors, now and with earlier formulas; the ends of
// the ranges; special values.
std::vector<float> HardFloats() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0f,
                          -0.0f,
                          kInf,
                          -kInf,
                          std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::signaling_NaN(),
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::lowest(),
                          std::numeric_limits<float>::min(),
                          std::numeric_limits<float>::denorm_min(),
                          -std::numeric_limits<float>::denorm_min(),
                          88.7228317f,
                          88.7228394f,
                          -103.97f,
                          -103.98f,
                          -87.3365f};
  for (const float worst : {5.20192909f, 37.7776642f, -0.973712862f, -0.879400551f, -2.1934309f,
                            -1.84611177f, -22.5283146f, -89.0723114f, -5.47580481f, -5.64569759f}) {
    x.push_back(worst);
  }
  // Dense where functions bend.
  for (int i = -200000; i <= 200000; ++i) x.push_back(static_cast<float>(i) * 7.23e-5f);
  return x;
}

std::string Describe(const Worst& worst) {
  char text[128];
  std::snprintf(text, sizeof(text), "%.4f ulp at f(%.9g) = %.9g", worst.ulps,
                static_cast<double>(worst.x), static_cast<double>(worst.y));
  return text;
}

}  // namespace

double FunctionsWork(bool full) {
  return static_cast<double>(std::size(reference::kAccuracies)) *
         (full ? kSecondsFull : kSecondsQuick);
}

void VerifyFunctions(const VerifyContext& context) {
  const std::vector<UlpTarget> targets = AllUlpTargets();
  const std::vector<float> hard = HardFloats();
  for (const reference::Accuracy& function : reference::kAccuracies) {
    context.progress.Begin(std::string(function.name),
                           FunctionsWork(context.full) / std::size(reference::kAccuracies));
    const std::vector<Worst> worst =
        LargestErrors(function, targets, context.step, hard,
                      [&](double share) { context.progress.Advance(share); });
    for (size_t t = 0; t < targets.size(); ++t) {
      const double promise =
          reference::TargetHasFma(targets[t].name) ? function.ulps : function.ulps_no_fma;
      context.report.Add({.section = VerifySection::kFunctions,
                          .check = std::string(function.name),
                          .target = targets[t].name,
                          .kept = worst[t].ulps <= promise,
                          .observed = worst[t].ulps,
                          .promise = promise,
                          .detail = Describe(worst[t])});
    }
  }
}

}  // namespace encore::tool
