// SPDX-License-Identifier: Apache-2.0
//
// Every fuzz target on its seeds, among which are the inputs that once broke a promise, and on some
// random changes of them: the same ones each time, in every build, and the same as those of
// `fuzz_standalone NAME --runs 300 FOLDER`, which keeps an input that ends the process. Long runs
// are tools/fuzz.sh's.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fuzz/check_encode.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

constexpr int kChanges = 300;  // of each target

class FuzzSeeds : public testing::TestWithParam<Target> {};

TEST_P(FuzzSeeds, AndChangesOfThemBreakNoPromise) {
  const std::vector<std::string> seeds =
      ReadSeeds(std::string(ENCORE_TEST_DATA_DIR "/fuzz/") + std::string(GetParam().name));
  ASSERT_FALSE(seeds.empty());
  for (const std::string& seed : seeds) GetParam().run(seed);
  GetParam().run("");
  Mutator mutator(seeds, 1);
  for (int i = 0; i < kChanges; ++i) GetParam().run(mutator.Next());
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzSeeds, testing::ValuesIn(Targets().begin(), Targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

// The targets' own decoder, against The Unicode Standard's examples of maximal subparts (3.9,
// table 3-8 and those before it).
TEST(ReplaceInvalid, ReplacesMaximalSubparts) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(ReplaceInvalid("a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"),
            "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80");
  EXPECT_EQ(ReplaceInvalid("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                           "A"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalid("\xED\xA0\x80"
                           "A"),
            r + r + r + "A");
  EXPECT_EQ(ReplaceInvalid("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                           "A"),
            r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalid("\xF4\x90\x80\x80"), r + r + r + r);
}

}  // namespace
}  // namespace encore::fuzz
