// SPDX-License-Identifier: Apache-2.0
//
// Each switch of LayerConfig against the double-precision reference, on every SIMD target, taps and
// runs in place included; then all of them at random.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <vector>

#include "encore/encoder.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "reference/golden_families.h"
#include "reference/switched.h"
#include "tests/support/check_model.h"
#include "tests/support/compare.h"
#include "tests/support/drawn_config.h"
#include "tests/support/guarded.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// 3 heads of 8, two layers.
LayerConfig PlainLayer() {
  return {.num_heads = 3, .d_ff = 30, .norm_placement = NormPlacement::kPre};
}

// Beyond blocks of 64 queries, and one of one token.
const std::vector<size_t> kSwitchLengths = {17, 1, 2, 65};

void CheckLayer(const LayerConfig& layer, double* worst, const WeightChoices& choices = {},
                const std::vector<size_t>& lengths = kSwitchLengths) {
  CheckModel(EncoderModel(EncoderConfig::Uniform(24, 2, layer), choices), lengths, worst);
}

void PrintWorst(double worst) { std::printf("worst error %.3f of the bound\n", worst); }

TEST(EncoderSwitches, NormsAndTheirPlaces) {
  double worst = 0;
  for (const NormType type : {NormType::kLayerNorm, NormType::kRmsNorm}) {
    for (const NormPlacement placement :
         {NormPlacement::kPost, NormPlacement::kPre, NormPlacement::kBoth}) {
      for (const double offset : {0.0, 1.0}) {
        for (const bool weights : {false, true}) {
          SCOPED_TRACE(testing::Message() << "type " << static_cast<int>(type) << ", placement "
                                          << static_cast<int>(placement) << ", offset " << offset
                                          << ", weights " << weights);
          LayerConfig layer = PlainLayer();
          layer.norm = {.type = type, .epsilon = 1e-4, .weight_offset = offset};
          layer.norm_placement = placement;
          EncoderConfig config = EncoderConfig::Uniform(24, 2, layer, layer.norm);
          CheckModel(EncoderModel(config, {.biases = weights, .norm_weights = weights}), {7, 20},
                     &worst);
        }
      }
    }
  }
  LayerConfig layer = PlainLayer();
  layer.attention_norm = false;
  CheckLayer(layer, &worst);
  PrintWorst(worst);
}

TEST(EncoderSwitches, GatesAndActivations) {
  double worst = 0;
  for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                      Activation::kSilu, Activation::kQuickGelu}) {
    for (const Gate gate : {Gate::kNone, Gate::kFirstHalf, Gate::kSecondHalf}) {
      for (const bool fused : {false, true}) {
        for (const size_t d_ff : {1, 30, 64, 1100}) {
          if (d_ff > 64 && gate == Gate::kSecondHalf) continue;
          SCOPED_TRACE(testing::Message()
                       << ActivationName(activation) << ", gate " << static_cast<int>(gate)
                       << ", fused " << fused << ", d_ff " << d_ff);
          LayerConfig layer = PlainLayer();
          layer.activation = activation;
          layer.gate = gate;
          layer.d_ff = d_ff;
          CheckModel(EncoderModel(EncoderConfig::Uniform(24, 1, layer),
                                  {.biases = d_ff != 64, .fused_first = fused}),
                     {9, 20}, &worst);
        }
      }
    }
  }
  PrintWorst(worst);
}

TEST(EncoderSwitches, Experts) {
  double worst = 0;
  for (const NormPlacement placement :
       {NormPlacement::kPost, NormPlacement::kPre, NormPlacement::kBoth}) {
    for (const ExpertsConfig& experts :
         {ExpertsConfig{},
          {.num_experts = 1, .top_k = 1},
          {.num_experts = 3, .top_k = 3},
          {.num_experts = 20, .top_k = 4, .normalize_weights = true}}) {
      for (const bool more : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << "placement " << static_cast<int>(placement) << ", " << experts.top_k
                     << " of " << experts.num_experts << ", more " << more);
        LayerConfig layer = PlainLayer();
        layer.norm_placement = placement;
        layer.activation = more ? Activation::kGelu : Activation::kRelu;
        layer.experts = experts;
        const bool scale = more && placement != NormPlacement::kBoth;
        CheckLayer(layer, &worst, {.biases = more, .layer_scale = scale});
      }
    }
  }
  EncoderConfig config = ExpertsInTurn();
  config.layers[1].d_ff = 300;
  CheckModel(EncoderModel(config, {.type = DType::kBF16}), {150, 1, 20}, &worst);
  PrintWorst(worst);
}

// All probabilities are equal: the first expert is taken, whose weight becomes 1.
TEST(EncoderSwitches, OfEqualExpertsTheFirstIsTaken) {
  LayerConfig layer = PlainLayer();
  layer.experts = ExpertsConfig{.num_experts = 3, .top_k = 1, .normalize_weights = true};
  const EncoderModel model(EncoderConfig::Uniform(24, 1, layer));
  const std::vector<float> zeros(3 * 24);
  EncoderWeights all = model.weights();
  all.layers[0].router = ConstView(zeros.data(), {3, 24});
  EncoderConfig config = model.config();
  config.layers[0].experts->num_experts = 1;
  EncoderWeights first = all;
  first.layers[0].router = ConstView(zeros.data(), {1, 24});
  for (WeightView EncoderLayerWeights::*matrix :
       {&EncoderLayerWeights::experts_first, &EncoderLayerWeights::experts_second}) {
    first.layers[0].*matrix =
        WeightView(DType::kF32, (all.layers[0].*matrix).data(), Shape(layer.d_ff, 24));
  }
  const Result<Encoder> of_three = Encoder::Create(model.config(), all);
  const Result<Encoder> of_one = Encoder::Create(config, first);
  ASSERT_TRUE(of_three.ok() && of_one.ok()) << of_one.status().message();
  const std::vector<float> x = RandomFloats(20 * 24, 3);
  const Batch batch{.seq_starts = {0, 20}};
  EXPECT_TRUE(SameBits(Forward(*of_three, batch, x), Forward(*of_one, batch, x)));
}

TEST(EncoderSwitches, LayerInputs) {
  double worst = 0;
  for (const NormPlacement placement :
       {NormPlacement::kPost, NormPlacement::kPre, NormPlacement::kBoth}) {
    for (const bool more : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << "placement " << static_cast<int>(placement) << ", more " << more);
      LayerConfig layer = PlainLayer();
      layer.norm_placement = placement;
      layer.activation = more ? Activation::kSilu : Activation::kRelu;
      layer.gate = more ? Gate::kFirstHalf : Gate::kNone;
      layer.layer_input = LayerInputConfig{.width = more ? 70u : 7u};
      if (more) layer.layer_input->norm = {.type = NormType::kRmsNorm, .epsilon = 1e-3};
      CheckLayer(layer, &worst, {.biases = more});
    }
  }
  CheckModel(EncoderModel(LayerInputs()), {1, 17, 130}, &worst);
  PrintWorst(worst);
}

TEST(EncoderSwitches, Convolutions) {
  double worst = 0;
  for (const NormPlacement placement :
       {NormPlacement::kPost, NormPlacement::kPre, NormPlacement::kBoth}) {
    for (const size_t kernel : {1, 3, 9}) {
      SCOPED_TRACE(testing::Message()
                   << "placement " << static_cast<int>(placement) << ", kernel " << kernel);
      LayerConfig layer = PlainLayer();
      layer.norm_placement = placement;
      layer.convolution = ConvolutionConfig{.kernel = kernel};
      if (kernel == 1) layer.convolution->activation = Activation::kRelu;
      // After the third sublayer.
      if (kernel == 3) layer.layer_input = LayerInputConfig{.width = 7};
      CheckLayer(layer, &worst, {.biases = kernel != 9});
    }
  }
  CheckModel(EncoderModel(Convolutions()), {1, 17, 130}, &worst);
  PrintWorst(worst);
}

// Rows past a sequence's ends are zeros, whatever its neighbours in the batch are.
TEST(EncoderSwitches, ConvolutionsEndWithTheirSequence) {
  const EncoderConfig config = Convolutions();
  const EncoderModel model(config);
  const std::vector<float> x = RandomFloats(9 * config.d_model, 4);
  std::vector<float> among = x;
  for (size_t i = 0; i < among.size(); ++i) {
    const size_t row = i / config.d_model;
    if (row < 2 || row >= 7) among[i] = std::numeric_limits<float>::quiet_NaN();
  }
  ForEachTarget([&](const std::string&) {
    for (const Precision precision : kPrecisions) {
      SCOPED_TRACE(PrecisionName(precision));
      const Encoder encoder = model.Make({.precision = precision});
      const auto middle = [&](const std::vector<float>& y) {
        return std::vector<float>(y.begin() + static_cast<ptrdiff_t>(2 * config.d_model),
                                  y.begin() + static_cast<ptrdiff_t>(7 * config.d_model));
      };
      const std::vector<float> alone = Forward(encoder, Batch{.seq_starts = {0, 5}}, middle(x));
      const std::vector<float> y = Forward(encoder, Batch{.seq_starts = {0, 2, 2, 7, 9}}, among);
      EXPECT_TRUE(SameBits(alone, middle(y)));
    }
  });
}

TEST(EncoderSwitches, NormsOfValues) {
  double worst = 0;
  for (const NormType type : {NormType::kLayerNorm, NormType::kRmsNorm}) {
    for (const size_t head_size : {7, 16}) {
      LayerConfig layer = PlainLayer();
      layer.head_size = head_size;
      layer.num_kv_heads = 1;
      layer.v_norm = {.type = type, .epsilon = 1e-6};
      CheckLayer(layer, &worst);
    }
  }
  PrintWorst(worst);
}

TEST(EncoderSwitches, GroupedHeadsAndTheirSizes) {
  double worst = 0;
  for (const size_t kv_heads : {1, 2, 3, 6}) {
    for (const size_t head_size : {1, 7, 16, 33}) {
      for (const bool fused : {false, true}) {
        SCOPED_TRACE(testing::Message() << kv_heads << " key heads of " << head_size);
        LayerConfig layer = PlainLayer();
        layer.num_heads = 6;
        layer.num_kv_heads = kv_heads;
        layer.head_size = head_size;
        if (head_size == 16) layer.attention_scale = 0.75;
        CheckLayer(layer, &worst, {.biases = fused, .fused_qkv = fused}, {17, 1, 65});
      }
    }
  }
  PrintWorst(worst);
}

TEST(EncoderSwitches, NormsOfHeads) {
  double worst = 0;
  for (const NormType type : {NormType::kLayerNorm, NormType::kRmsNorm}) {
    for (const size_t head_size : {7, 16}) {
      for (const bool rotary : {false, true}) {
        LayerConfig layer = PlainLayer();
        layer.head_size = head_size;
        layer.num_kv_heads = 1;
        layer.qk_norm = {.type = type, .epsilon = 1e-6, .weight_offset = rotary ? 1.0 : 0.0};
        if (rotary) layer.rotary = RotaryConfig{.size = 6};
        CheckLayer(layer, &worst, {.norm_weights = head_size == 16});
      }
    }
  }
  PrintWorst(worst);
}

TEST(EncoderSwitches, RotaryPositions) {
  double worst = 0;
  const RotaryConfig rotaries[] = {
      {},
      {.size = 2},
      {.size = 6, .theta = 160000},
      {.inverse_frequencies = {1, 0, 0.3, -0.01}},
      {.size = 4, .inverse_frequencies = {0.9, 1e-3}, .magnitude = 1.3},
  };
  for (RotaryConfig rotary : rotaries) {
    for (const bool interleaved : {false, true}) {
      SCOPED_TRACE(testing::Message() << "size " << rotary.size << ", " << interleaved);
      LayerConfig layer = PlainLayer();
      rotary.interleaved = interleaved;
      layer.rotary = rotary;
      CheckLayer(layer, &worst);
    }
  }
  // Whole vectors and more, and layers with tables of their own.
  EncoderConfig config = EncoderConfig::Uniform(40, 3, {.num_heads = 1, .d_ff = 10});
  config.layers[0].rotary = RotaryConfig{};
  config.layers[2].rotary = RotaryConfig{.size = 34, .theta = 500};
  CheckModel(EncoderModel(config), {130, 3}, &worst);
  PrintWorst(worst);
}

TEST(EncoderSwitches, RotaryPositionsOnAGrid) {
  double worst = 0;
  const RotaryConfig rotaries[] = {
      {.theta = 100, .grid = RotaryGrid{5, 6, 9}},
      {.size = 4, .grid = RotaryGrid{0, 65, 1}},
      {.inverse_frequencies = {1, -0.2, 0.3, 40}, .magnitude = 1.3, .grid = RotaryGrid{64, 1, 7}},
  };
  for (RotaryConfig rotary : rotaries) {
    for (const bool interleaved : {false, true}) {
      SCOPED_TRACE(testing::Message() << rotary.grid->rows << " rows, " << interleaved);
      LayerConfig layer = PlainLayer();
      rotary.interleaved = interleaved;
      layer.rotary = rotary;
      CheckLayer(layer, &worst, {}, {17, 1, 59});
    }
  }
  // Beside layers whose places are on a line, or on another grid.
  EncoderConfig config = EncoderConfig::Uniform(24, 3, PlainLayer());
  config.layers[0].rotary = RotaryConfig{.grid = RotaryGrid{2, 10, 6}};
  config.layers[1].rotary = RotaryConfig{};
  config.layers[2].rotary = RotaryConfig{.grid = RotaryGrid{2, 6, 10}};
  CheckModel(EncoderModel(config), {62, 3}, &worst);
  PrintWorst(worst);
}

TEST(EncoderSwitches, BiasesByDistance) {
  double worst = 0;
  LayerConfig layer = PlainLayer();
  layer.alibi = AlibiConfig{};
  for (const size_t heads : {1, 3, 8, 12}) {
    layer.num_heads = heads;
    CheckLayer(layer, &worst, {}, {17, 1, 70});
  }
  layer.num_heads = 3;
  layer.alibi->slopes = {0.5, -0.25, 0};
  CheckLayer(layer, &worst, {}, {130});
  layer.alibi.reset();
  for (const bool shared : {false, true}) {
    for (const BucketConfig& buckets : {BucketConfig{},
                                        {.num_buckets = 4, .max_distance = 2},
                                        {.num_buckets = 8, .max_distance = 7},
                                        {.num_buckets = 64, .max_distance = 256}}) {
      SCOPED_TRACE(testing::Message() << buckets.num_buckets << " buckets, shared " << shared);
      layer.buckets = buckets;
      CheckLayer(layer, &worst, {.shared_position_bias = shared}, {17, 1, 150});
    }
  }
  PrintWorst(worst);
}

TEST(EncoderSwitches, RelativeEmbeddings) {
  double worst = 0;
  const RelativeConfig relatives[] = {
      {.buckets = 8, .max_distance = 40},
      {.buckets = 8, .max_distance = 40, .position_to_content = false},
      {.buckets = 8, .max_distance = 40, .content_to_position = false},
      {.buckets = 2, .max_distance = 3},    // all distances but 0 and 1 alike
      {.buckets = 7, .max_distance = 30},   // an odd number
      {.buckets = 40, .max_distance = 24},  // buckets that no distance has
      {.max_distance = 5},                  // no buckets
      {.max_distance = 100},
      {.buckets = 32, .max_distance = 128, .norm = {.epsilon = 1e-7}},
  };
  for (RelativeConfig relative : relatives) {
    for (const bool own : {false, true}) {
      SCOPED_TRACE(testing::Message() << relative.buckets << " buckets to " << relative.max_distance
                                      << ", own projections " << own);
      LayerConfig layer = PlainLayer();
      relative.own_projections = own;
      layer.relative = relative;
      layer.attention_scale = 0.2;
      CheckLayer(layer, &worst, {.fused_qkv = own, .shared_position_bias = !own}, {1, 2, 90});
    }
  }
  LayerConfig layer = PlainLayer();
  layer.num_heads = 6;
  layer.relative = relatives[0];
  for (const size_t head_size : {5, 16}) {  // key heads that are shared
    layer.head_size = head_size;
    for (const size_t kv_heads : {1, 3}) {
      layer.num_kv_heads = kv_heads;
      CheckLayer(layer, &worst, {}, {65, 20});
    }
  }
  layer.window = 70;
  CheckLayer(layer, &worst, {}, {140, 3});
  layer.causal = true;
  CheckLayer(layer, &worst, {}, {70, 3});
  // Beyond a tile of 512 keys.
  EncoderConfig config = EncoderConfig::Uniform(8, 2, {.num_heads = 1, .d_ff = 12});
  config.layers[0].relative = RelativeConfig{.buckets = 64, .max_distance = 256};
  config.layers[1].relative = RelativeConfig{.max_distance = 600};
  CheckModel(EncoderModel(config), {530, 3}, &worst);
  PrintWorst(worst);
}

TEST(EncoderSwitches, CausalityAndWindows) {
  double worst = 0;
  for (const bool causal : {false, true}) {
    for (const size_t window : {size_t{1}, size_t{5}, size_t{63}, size_t{64}, size_t{500},
                                std::numeric_limits<size_t>::max()}) {
      SCOPED_TRACE(testing::Message() << "causal " << causal << ", window " << window);
      LayerConfig layer = PlainLayer();
      layer.causal = causal;
      layer.window = window;
      CheckLayer(layer, &worst, {}, {17, 1, 2, 65, 130});
      layer.alibi = AlibiConfig{};
      CheckLayer(layer, &worst, {}, {66});
    }
  }
  // Beyond a tile of 512 keys; one layer sees all, one a window.
  EncoderConfig config = EncoderConfig::Uniform(8, 2, {.num_heads = 1, .d_ff = 12});
  config.layers[1].window = 40;
  CheckModel(EncoderModel(config), {530, 3}, &worst);
  config.layers[0].causal = true;
  config.layers[0].buckets = BucketConfig{};
  config.layers[1].window = 513;
  CheckModel(EncoderModel(config), {530, 600}, &worst);
  PrintWorst(worst);
}

TEST(EncoderSwitches, MasksOfEachHead) {
  double worst = 0;
  constexpr size_t kSize = 70;
  std::vector<float> add = RandomFloats(3 * kSize * kSize, 4);
  for (float& v : add) {
    if (v > 0.8f) v = -std::numeric_limits<float>::infinity();
  }
  const AttentionMask masks[] = {{.additive = ConstView(add.data(), {kSize, kSize})},
                                 {.additive = ConstView(add.data(), {3, kSize, kSize})}};
  for (const AttentionMask& mask : masks) {
    LayerConfig layer = PlainLayer();
    const auto check = [&] {
      CheckModel(EncoderModel(EncoderConfig::Uniform(24, 2, layer)), {70, 1, 33}, &worst, mask);
    };
    check();
    layer.buckets = BucketConfig{};
    check();
    layer.window = 20;
    layer.num_kv_heads = 1;
    check();
    layer.buckets.reset();
    layer.relative = RelativeConfig{.buckets = 16, .max_distance = 40};
    check();
  }
  PrintWorst(worst);
}

TEST(EncoderSwitches, LayerScaleAndTypesOfWeights) {
  double worst = 0;
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    for (const bool scale : {false, true}) {
      for (const bool fused : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << DTypeName(type) << ", LayerScale " << scale << ", fused " << fused);
        LayerConfig layer = PlainLayer();
        layer.gate = Gate::kSecondHalf;
        layer.buckets = BucketConfig{};
        layer.qk_norm.type = NormType::kRmsNorm;
        CheckLayer(layer, &worst,
                   {.fused_qkv = fused, .fused_first = fused, .layer_scale = scale, .type = type},
                   {9, 20});
      }
    }
  }
  PrintWorst(worst);
}

// The models whose hashes are published.
TEST(EncoderSwitches, Families) {
  double worst = 0;
  for (const auto& family : {reference::ModernBert(), reference::Gemma(), reference::T5(),
                             reference::Qwen3(), reference::Jina()}) {
    CheckModel(EncoderModel(family.config, family.choices), {1, 17, 130}, &worst, {}, 2);
  }
  PrintWorst(worst);
}

TEST(EncoderSwitches, AtRandom) {
  double worst = 0;
  for (uint32_t seed = 1; seed <= (kSlow ? 5 : 60); ++seed) {
    Draw draw(seed);
    const EncoderConfig config = DrawConfig(draw);
    if (config.d_model < 4) continue;  // norms of so few leave nothing to compare
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << Describe(config));
    const EncoderModel model(config, DrawChoices(draw, config), draw.Seed());
    CheckModel(model, {draw.Between(1, 40), 1, draw.Between(60, 80)}, &worst);
  }
  PrintWorst(worst);
}

}  // namespace
}  // namespace encore
