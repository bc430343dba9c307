// SPDX-License-Identifier: Apache-2.0
//
// How much stack Forward takes, which encoder.h states: threads of a host may have little.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "reference/encoder_model.h"
#include "reference/golden_families.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"
#include "tests/support/stack_use.h"
#include "tests/support/targets.h"

#if defined(__linux__)

namespace encore {
namespace {

constexpr size_t kStated = size_t{96} << 10;  // encoder.h

using reference::GoldenFamily;

// Wide enough for every way of blocking.
GoldenFamily Wide() {
  return {EncoderConfig::Uniform(768, 1,
                                 {.num_heads = 12, .d_ff = 3072, .activation = Activation::kGelu}),
          {}};
}

TEST(EncoderStack, ForwardTakesNoMoreThanIsStated) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take more stack";
  const size_t idle = StackOf([] {});
  size_t most = 0;
  const GoldenFamily families[] = {reference::ModernBert(), reference::Gemma(), reference::T5(),
                                   reference::Jina(), Wide()};
  ForEachTarget([&](const std::string& target) {
    for (const GoldenFamily& family : families) {
      const EncoderModel model(family.config, family.choices);
      for (const Precision precision : kPrecisions) {
        const Encoder encoder = model.Make({.precision = precision});
        const std::vector<size_t> starts = {0, 1, 200};
        const Batch batch{.seq_starts = starts};
        Workspace workspace = *encoder.MakeWorkspace(batch);
        std::vector<float> x(200 * encoder.config().d_model, 0.5f);
        const MutableView view(x.data(), {200, encoder.config().d_model});
        const size_t taken =
            StackOf([&] { EXPECT_TRUE(encoder.Forward(batch, view, view, workspace).ok()); });
        EXPECT_LE(taken, idle + kStated) << target << " " << PrecisionName(precision);
        most = std::max(most, taken - idle);
      }
    }
  });
  std::printf("most stack: %zu bytes\n", most);
}

}  // namespace
}  // namespace encore
#endif
