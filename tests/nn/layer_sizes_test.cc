// SPDX-License-Identifier: Apache-2.0
//
// Sizes, operations and visible pairs of a layer, and what a model of several makes of them.

#include "engine/nn/layer_sizes.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "encore/encoder.h"
#include "engine/nn/thread_plan.h"
#include "gtest/gtest.h"

namespace encore::inline v0_1::internal {
namespace {

TEST(LayerSizes, Flops) {
  // 8 S d^2 + 4 S d d_ff + 4 S^2 d where nothing is switched on, by hand.
  LayerConfig layer{.num_heads = 1, .d_ff = 5};
  EXPECT_EQ(LayerFlops(2, layer, 3), 96 + 120 + 72);
  EXPECT_EQ(LayerFlops(2, layer, 0), 0);
  // 3 products with d_ff, not 2, and 6 of 9 pairs.
  layer.gate = Gate::kFirstHalf;
  layer.causal = true;
  EXPECT_EQ(LayerFlops(2, layer, 3), 96 + 180 + 48);
  layer.window = 1;
  EXPECT_EQ(VisiblePairs(layer.causal, layer.window, 3), 5);
  layer.causal = false;
  EXPECT_EQ(VisiblePairs(layer.causal, layer.window, 3), 7);
}

// Against counting them.
TEST(LayerSizes, VisiblePairs) {
  for (const bool causal : {false, true}) {
    for (const size_t tokens : {0, 1, 2, 9, 40}) {
      for (const size_t window : {size_t{1}, size_t{2}, size_t{8}, size_t{39}, size_t{40},
                                  std::numeric_limits<size_t>::max()}) {
        size_t pairs = 0;
        for (size_t i = 0; i < tokens; ++i) {
          for (size_t j = 0; j < (causal ? i + 1 : tokens); ++j) {
            pairs += std::max(i, j) - std::min(i, j) <= window ? 1 : 0;
          }
        }
        const LayerConfig layer{.causal = causal, .window = window};
        EXPECT_EQ(VisiblePairs(layer.causal, layer.window, tokens), static_cast<double>(pairs))
            << tokens << " tokens, window " << window << ", causal " << causal;
      }
    }
  }
}

TEST(LayerSizes, Widths) {
  const LayerSizes sizes(64, {.num_heads = 8, .num_kv_heads = 2, .head_size = 5, .d_ff = 7});
  EXPECT_EQ(sizes.group(), 4u);
  EXPECT_EQ(sizes.q_width(), 40u);
  EXPECT_EQ(sizes.kv_width(), 10u);
  EXPECT_EQ(sizes.qkv_width(), 60u);
  const LayerSizes defaults(64, {.num_heads = 8, .d_ff = 7});
  EXPECT_EQ(defaults.kv_heads, 8u);
  EXPECT_EQ(defaults.head_size, 8u);
}

TEST(ModelSizes, TheLargestOfLayers) {
  // A mean of layers: the first has a gate, the second has not.
  EncoderConfig config = EncoderConfig::Uniform(2, 2, {.num_heads = 1, .d_ff = 5});
  config.layers[0].gate = Gate::kSecondHalf;
  EXPECT_EQ(ModelSizes(config).FlopsOfLayer(3), 96 + 150 + 72);
  config.layers[1].num_heads = 4;
  config.layers[1].head_size = 16;
  config.layers[1].num_kv_heads = 2;
  config.layers[1].window = 3;
  const ModelSizes sizes(config);
  EXPECT_EQ(sizes.q_width, 64u);
  EXPECT_EQ(sizes.kv_width, 32u);
  EXPECT_EQ(sizes.qkv_width, 128u);
  EXPECT_EQ(sizes.head_size, 16u);
  EXPECT_EQ(sizes.d_ff, 5u);
  EXPECT_EQ(sizes.global_kv_width, 2u);
  EXPECT_EQ(sizes.packed_value_bytes, 64u);  // the first layer's one head of 2
  config.layers[0].head_size = 16;
  EXPECT_EQ(ModelSizes(config).packed_value_bytes, 0u);
}

}  // namespace
}  // namespace encore::internal
