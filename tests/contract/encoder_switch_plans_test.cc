// SPDX-License-Identifier: Apache-2.0
//
// Layers with grouped heads, rotary positions, gates, windows and tables, shared among threads in
// every way: each sequence has the bits that it has alone.

#include <cstddef>
#include <vector>

#include "encore/encoder.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "reference/switched.h"
#include "tests/contract/plan_ways.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// Calls f(config) for heads that are whole vectors and that are none, with few and many key heads.
template <typename F>
void ForEachSwitchedModel(const F& f) {
  ForEachTarget([&](const std::string&) {
    for (const size_t head_size : {16, 12}) {
      EncoderConfig config = RotaryAndGate(6, head_size);
      for (const size_t kv_heads : {1, 3, 6}) {
        if (kSlow && kv_heads != 1) continue;
        SCOPED_TRACE(testing::Message() << kv_heads << " key heads of " << head_size);
        for (LayerConfig& layer : config.layers) {
          layer.num_kv_heads = kv_heads;
          layer.d_ff = 701;
        }
        f(config);
      }
    }
    EncoderConfig config = BucketsAndBothNorms();
    for (LayerConfig& layer : config.layers) layer.d_ff = 1201;
    config.layers[1].window = 30;
    f(config);
    config = RelativeAndWindow();
    for (LayerConfig& layer : config.layers) layer.d_ff = 1201;
    f(config);
    config = LayerInputs();
    for (LayerConfig& layer : config.layers) layer.d_ff = 1201;
    f(config);
    config = Convolutions();
    for (LayerConfig& layer : config.layers) layer.d_ff = 1201;
    f(config);
    config = ExpertsLast();
    for (LayerConfig& layer : config.layers) layer.d_ff = 1201;
    f(config);
  });
}

TEST(EncoderSwitchPlans, Sequences) {
  std::vector<size_t> lengths;
  for (size_t i = 0; i < 40; ++i) lengths.push_back(i % 10 == 9 ? 0 : 17 + i * 7 % 13);
  ForEachSwitchedModel([&](const EncoderConfig& config) {
    ExpectWay(Way::kSequencesInOwnWindows, config, lengths, 2);
    ExpectWay(Way::kSequencesInOwnWindows, config, lengths, 1);
    ExpectWay(Way::kSequencesInPlace, config, {100, 0, 100}, 2);
  });
}

TEST(EncoderSwitchPlans, Rows) {
  ForEachSwitchedModel([&](const EncoderConfig& config) {
    ExpectWay(Way::kRowsWithAttention, config, {530}, 2);
    ExpectWay(Way::kRowsAttentionApart, config, {1, 530, 0, 65}, 3);
  });
}

// More threads than key heads, and fewer.
TEST(EncoderSwitchPlans, Columns) {
  ForEachSwitchedModel([&](const EncoderConfig& config) {
    const Way way = HeadsTogether(config, 2) ? Way::kColumnsHeadsTogether : Way::kColumnsInSteps;
    ExpectWay(way, config, {50}, 2);
    ExpectWay(way, config, {33, 0, 1, 16}, 2, {.causal = true});
    EncoderConfig wide = config;
    for (LayerConfig& layer : wide.layers) layer.d_ff = 4001;
    ExpectWay(Way::kColumnsInSteps, wide, {50}, 5);
  });
}

// As many key heads as let threads have whole panels of q, k and v, if some number does; the layers
// differ in it, so that the next one may go in steps.
TEST(EncoderSwitchPlans, ColumnsHeadsTogether) {
  ForEachTarget([&](const std::string&) {
    size_t found = 0;
    for (const size_t group : {1, 2, 3}) {
      for (const size_t kv_heads : {2, 4, 6, 8, 12}) {
        EncoderConfig config = RotaryAndGate(group * kv_heads, 32);
        for (LayerConfig& layer : config.layers) {
          layer.num_kv_heads = kv_heads;
          layer.d_ff = 500;
        }
        if (!HeadsTogether(config, 2)) continue;
        SCOPED_TRACE(testing::Message() << kv_heads << " key heads, " << group << " queries each");
        ++found;
        config.layers[1].num_kv_heads = 1;
        ExpectWay(Way::kColumnsHeadsTogether, config, {50}, 2);
        ExpectWay(Way::kColumnsHeadsTogether, config, {7, 0, 40}, 2);
        break;
      }
    }
    EXPECT_GE(found, 2u);
  });
}

}  // namespace
}  // namespace encore
