// SPDX-License-Identifier: Apache-2.0
//
// That `encore verify` sees a library that breaks the numeric contract: one promise each
// (tests/broken), named in the report's own words.

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "reference/accuracy.h"
#include "tests/cli/cli_runner.h"

namespace encore {
namespace {

struct Break {
  std::string name;
  std::string part;   // of `encore verify`
  std::string words;  // of the sentence that names the promise
};

void PrintTo(const Break& broken, std::ostream* out) { *out << broken.name; }

class CliBrokenTest : public CliTest, public testing::WithParamInterface<Break> {};

TEST_P(CliBrokenTest, VerifyNamesThePromise) {
  const std::vector<std::string> targets = SupportedTargets();
  if (GetParam().name == "contraction") {  // it breaks AVX2 alone
    const auto with_fma = std::count_if(targets.begin(), targets.end(), reference::TargetHasFma);
    if (std::find(targets.begin(), targets.end(), "AVX2") == targets.end() || with_fma < 2) {
      GTEST_SKIP() << "takes AVX2 and another target with FMA";
    }
  }
  const CliResult result =
      Run(ENCORE_BROKEN_DIR "/encore_" + GetParam().name,
          {"verify", "--only", GetParam().part, "--batches", "1", "--precision", "f32"});
  EXPECT_EQ(result.status, 1) << result.err;
  const std::string& report = result.out;
  bool named = false;
  for (size_t at = report.find("\nBROKEN: "); at != std::string::npos;
       at = report.find("\nBROKEN: ", at + 1)) {
    const std::string line = report.substr(at + 1, report.find('\n', at + 1) - at - 1);
    named |= line.find(GetParam().words) != std::string::npos;
  }
  EXPECT_TRUE(named) << "no line names '" << GetParam().words << "':\n" << report;
}

INSTANTIATE_TEST_SUITE_P(
    Each, CliBrokenTest,
    testing::Values(Break{"split_accumulator", "bits", "products are one chain of FMAs"},
                    Break{"reduction_order", "bits", "sums in 16 virtual lanes"},
                    Break{"contraction", "bits", "every target with FMA"},
                    Break{"bf16_ties", "conversions", "not the nearest one: bf16 weights"},
                    Break{"exp", "functions", "an error is larger than promised: exp"}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace encore
