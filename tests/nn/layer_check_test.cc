// SPDX-License-Identifier: Apache-2.0
//
// Configurations and weights that Encoder::Create refuses: one case for every sentence of
// engine/nn/config_check.cc and weights_check.cc, each naming the switch or tensor, what was found
// and what was wanted.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "engine/nn/layer_tensors.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "tests/support/near_rounded.h"

namespace encore {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

EncoderConfig Good() {
  return TorchStack{.d_model = 8, .num_heads = 2, .d_ff = 12, .num_layers = 2, .final_norm = true};
}

// Of a configuration that differs from the good one; weights are drawn for the latter.
testing::AssertionResult Refuses(const std::function<void(EncoderConfig&)>& change,
                                 const std::vector<std::string>& parts) {
  const EncoderModel model(Good());
  EncoderConfig config = Good();
  change(config);
  return FailsWith(Encoder::Create(config, model.weights()), parts);
}

// The same for a switch of layer 1.
testing::AssertionResult RefusesLayer(const std::function<void(LayerConfig&)>& change,
                                      const std::vector<std::string>& parts) {
  return Refuses([&](EncoderConfig& c) { change(c.layers[1]); }, parts);
}

using C = EncoderConfig;
using L = LayerConfig;

TEST(LayerCheck, Sizes) {
  EXPECT_TRUE(Refuses([](C& c) { c.d_model = 0; }, {"d_model is 0; wanted at least 1"}));
  EXPECT_TRUE(
      Refuses([](C& c) { c.layers.clear(); }, {"layers is empty; wanted at least one layer"}));
  EXPECT_TRUE(
      RefusesLayer([](L& l) { l.num_heads = 0; }, {"layers[1].num_heads is 0; wanted at least 1"}));
  EXPECT_TRUE(RefusesLayer([](L& l) { l.num_heads = 3; },
                           {"layers[1].num_heads is 3 and d_model is 8", "divides d_model"}));
  EXPECT_TRUE(RefusesLayer([](L& l) { l.num_heads = 16; }, {"num_heads is 16"}));
  for (const size_t kv_heads : {3, 4}) {
    EXPECT_TRUE(RefusesLayer([&](L& l) { l.num_kv_heads = kv_heads; },
                             {"layers[1].num_kv_heads is " + std::to_string(kv_heads),
                              "num_heads is 2", "a num_kv_heads that divides num_heads"}));
  }
  EXPECT_TRUE(RefusesLayer([](L& l) { l.d_ff = 0; }, {"layers[1].d_ff is 0; wanted at least 1"}));
  EXPECT_TRUE(
      RefusesLayer([](L& l) { l.window = 0; }, {"layers[1].window is 0; wanted at least 1"}));
  EXPECT_TRUE(Refuses([](C& c) { c.d_model = size_t{1} << 40; },
                      {"layers[0].", "d_model 1099511627776", "can be addressed"}));
  EXPECT_TRUE(RefusesLayer([](L& l) { l.d_ff = SIZE_MAX; },
                           {"layers[1].d_ff is 18446744073709551615", "can be addressed"}));
  EXPECT_TRUE(RefusesLayer([](L& l) { l.head_size = SIZE_MAX / 8; }, {"can be addressed"}));
}

TEST(LayerCheck, NumbersAndEnumerators) {
  for (const double bad : {kInf, -kInf, std::nan(""), 1e39}) {
    EXPECT_TRUE(RefusesLayer([&](L& l) { l.attention_scale = bad; },
                             {"layers[1].attention_scale is ", "wanted a finite f32 number"}));
    EXPECT_TRUE(RefusesLayer([&](L& l) { l.norm.weight_offset = bad; },
                             {"layers[1].norm.weight_offset is ", "wanted a finite f32 number"}));
  }
  for (const double bad : {-1e-5, kInf, -kInf, std::nan("")}) {
    const std::vector<std::string> parts = {"norm.epsilon is ",
                                            "wanted a finite number of at least 0"};
    EXPECT_TRUE(RefusesLayer([&](L& l) { l.norm.epsilon = bad; }, parts));
    EXPECT_TRUE(RefusesLayer([&](L& l) { l.qk_norm.epsilon = bad; }, parts));
    EXPECT_TRUE(Refuses([&](C& c) { c.final_norm.epsilon = bad; }, parts));
  }
  const auto beyond = [](auto& enumerator) {
    enumerator = static_cast<std::remove_reference_t<decltype(enumerator)>>(17);
  };
  EXPECT_TRUE(RefusesLayer([&](L& l) { beyond(l.activation); },
                           {"layers[1].activation is number 17", "one of the Activation"}));
  EXPECT_TRUE(
      RefusesLayer([&](L& l) { beyond(l.gate); }, {"gate is number 17", "one of the Gate"}));
  EXPECT_TRUE(RefusesLayer([&](L& l) { beyond(l.norm_placement); },
                           {"norm_placement is number 17", "one of the NormPlacement"}));
  EXPECT_TRUE(RefusesLayer([&](L& l) { beyond(l.norm.type); },
                           {"norm.type is number 17", "one of the NormType"}));
  EXPECT_TRUE(RefusesLayer([&](L& l) { beyond(l.qk_norm.type); }, {"qk_norm.type is number 17"}));
  EXPECT_TRUE(Refuses([&](C& c) { beyond(c.final_norm.type); }, {"final_norm.type is number 17"}));
}

TEST(LayerCheck, NormsAndTheirPlaces) {
  EXPECT_TRUE(RefusesLayer([](L& l) { l.norm.type = NormType::kNone; },
                           {"layers[1].norm.type is kNone; wanted kLayerNorm or kRmsNorm"}));
  for (const NormPlacement placement : {NormPlacement::kPost, NormPlacement::kBoth}) {
    EXPECT_TRUE(RefusesLayer(
        [&](L& l) {
          l.norm_placement = placement;
          l.attention_norm = false;
        },
        {"layers[1].attention_norm is false and norm_placement is not kPre", "with kPre only"}));
  }
}

TEST(LayerCheck, Positions) {
  const auto rotary = [](const RotaryConfig& r) { return [r](L& l) { l.rotary = r; }; };
  EXPECT_TRUE(RefusesLayer(rotary({.size = 3}), {"rotary.size is 3; wanted an even number"}));
  EXPECT_TRUE(RefusesLayer(rotary({.size = 6}),
                           {"rotary.size is 6; wanted at most the head size, which is 4"}));
  for (const double theta : {0.0, -1.0, 1e-320, kInf, std::nan("")}) {
    EXPECT_TRUE(RefusesLayer(rotary({.theta = theta}),
                             {"rotary.theta is ", "wanted a finite, normal number above 0"}));
  }
  EXPECT_TRUE(RefusesLayer(rotary({.magnitude = kInf}),
                           {"rotary.magnitude is ", "wanted a finite f32 number"}));
  EXPECT_TRUE(RefusesLayer(rotary({.inverse_frequencies = {1}}),
                           {"rotary.inverse_frequencies has 1 numbers", "half of rotary.size, 2"}));
  EXPECT_TRUE(RefusesLayer(rotary({.inverse_frequencies = {1, kInf}}),
                           {"rotary.inverse_frequencies[1] is ", "wanted a finite number"}));
  EXPECT_TRUE(RefusesLayer(rotary({.size = 2, .grid = RotaryGrid{1, 2, 2}}),
                           {"rotary.size is 2; wanted a multiple of 4 beside a grid"}));
  for (const RotaryGrid& grid : {RotaryGrid{1, 0, 2}, RotaryGrid{1, 2, 0},
                                 RotaryGrid{1, 2, 1 << 21}, RotaryGrid{SIZE_MAX, 2, 2}}) {
    EXPECT_TRUE(RefusesLayer(rotary({.grid = grid}),
                             {"rotary.grid is ", "wanted 1 .. 2^20 in each direction"}));
  }
  EXPECT_TRUE(RefusesLayer(
      [](L& l) {
        l.alibi = AlibiConfig{.slopes = {1, 2, 3}};
      },
      {"alibi.slopes has 3 numbers", "one for each of the 2 heads"}));
  EXPECT_TRUE(RefusesLayer(
      [](L& l) {
        l.alibi = AlibiConfig{.slopes = {1, -kInf}};
      },
      {"alibi.slopes[1] is ", "wanted a finite f32 number"}));
  for (const size_t buckets : {size_t{0}, size_t{2}, size_t{30}, size_t{1} << 21}) {
    EXPECT_TRUE(RefusesLayer([&](L& l) { l.buckets = BucketConfig{.num_buckets = buckets}; },
                             {"buckets.num_buckets is " + std::to_string(buckets),
                              "wanted a multiple of 4 up to 2^20"}));
  }
  for (const size_t distance : {size_t{8}, (size_t{1} << 20) + 1}) {
    EXPECT_TRUE(RefusesLayer([&](L& l) { l.buckets = BucketConfig{.max_distance = distance}; },
                             {"buckets.max_distance is " + std::to_string(distance),
                              "more than a quarter of num_buckets, and at most 2^20"}));
  }
}

TEST(LayerCheck, OneKindOfPositions) {
  const std::string wanted = "wanted at most one of rotary, alibi and buckets";
  const auto given = [](bool rotary, bool alibi, bool buckets) {
    return [=](L& l) {
      if (rotary) l.rotary = RotaryConfig{};
      if (alibi) l.alibi = AlibiConfig{};
      if (buckets) l.buckets = BucketConfig{};
    };
  };
  EXPECT_TRUE(
      RefusesLayer(given(false, true, true), {"positions are given by alibi and buckets", wanted}));
  EXPECT_TRUE(
      RefusesLayer(given(true, true, false), {"positions are given by rotary and alibi", wanted}));
  EXPECT_TRUE(RefusesLayer(given(true, false, true),
                           {"positions are given by rotary and buckets", wanted}));
  EXPECT_TRUE(RefusesLayer(given(true, true, true),
                           {"positions are given by rotary and alibi and buckets", wanted}));
}

TEST(LayerCheck, RelativeEmbeddings) {
  const auto refuses = [](const std::function<void(L&)>& change,
                          const std::vector<std::string>& parts) {
    return RefusesLayer(
        [&](L& l) {
          l.relative = RelativeConfig{};
          change(l);
        },
        parts);
  };
  EXPECT_TRUE(refuses([](L& l) { l.alibi = AlibiConfig{}; },
                      {"positions are given by relative and another"}));
  EXPECT_TRUE(
      refuses([](L& l) { l.qk_norm.type = NormType::kRmsNorm; }, {"relative without qk_norm"}));
  EXPECT_TRUE(refuses(
      [](L& l) { l.relative->content_to_position = l.relative->position_to_content = false; },
      {"relative.content_to_position and position_to_content are false"}));
  for (const size_t buckets : {size_t{1}, size_t{1022}, size_t{1} << 21}) {
    EXPECT_TRUE(refuses([&](L& l) { l.relative->buckets = buckets; }, {"relative.", "wanted "}));
  }
  for (const size_t distance : {size_t{0}, size_t{1}, size_t{1} << 21}) {
    EXPECT_TRUE(refuses([&](L& l) { l.relative->max_distance = distance; },
                        {"relative.max_distance is " + std::to_string(distance)}));
  }
  EXPECT_TRUE(
      refuses([](L& l) { l.relative->norm.epsilon = -1; }, {"relative.norm.epsilon is -1"}));
  EXPECT_TRUE(refuses([](L&) {}, {"self_attn.relative_embeddings is missing; wanted shape [1024"}));
}

TEST(LayerCheck, Experts) {
  const auto experts = [](const ExpertsConfig& e) { return [e](L& l) { l.experts = e; }; };
  for (const size_t bad : {size_t{0}, size_t{4097}, SIZE_MAX}) {
    EXPECT_TRUE(RefusesLayer(
        experts({.num_experts = bad}),
        {"layers[1].experts.num_experts is " + std::to_string(bad), "wanted 1 to 4096"}));
  }
  for (const size_t bad : {0, 9}) {
    EXPECT_TRUE(
        RefusesLayer(experts({.top_k = bad}), {"layers[1].experts.top_k is " + std::to_string(bad),
                                               "wanted 1 to experts.num_experts, which is 8"}));
  }
  EXPECT_TRUE(RefusesLayer(
      [](L& l) {
        l.experts.emplace();
        l.gate = Gate::kFirstHalf;
      },
      {"layers[1].experts are given and gate is not kNone", "not gated"}));
  EXPECT_TRUE(RefusesLayer(
      [](L& l) {
        l.experts = ExpertsConfig{.num_experts = 4096};
        l.d_ff = SIZE_MAX / 1024;
      },
      {"d_ff is ", "can be addressed"}));
  // Neither has tensors of the other.
  EXPECT_TRUE(
      RefusesLayer(experts({}), {"layers.1.linear1.weight is given and the layer has experts"}));
}

TEST(LayerCheck, LayerInputs) {
  EXPECT_TRUE(RefusesLayer([](L& l) { l.layer_input.emplace(); },
                           {"layers[1].layer_input.width is 0; wanted at least 1"}));
  EXPECT_TRUE(RefusesLayer([](L& l) { l.layer_input = LayerInputConfig{.width = SIZE_MAX / 4}; },
                           {"can be addressed"}));
  EXPECT_TRUE(RefusesLayer(
      [](L& l) { l.layer_input = LayerInputConfig{.width = 5, .norm = {.epsilon = -1}}; },
      {"layers[1].layer_input.norm.epsilon is -1"}));
  EXPECT_TRUE(
      RefusesLayer([](L& l) { l.v_norm.epsilon = -1; }, {"layers[1].v_norm.epsilon is -1"}));
  EXPECT_TRUE(RefusesLayer([](L& l) { l.layer_input = LayerInputConfig{.width = 5}; },
                           {"layers.1.input_proj.weight is missing; wanted shape [5, 8]"}));
}

TEST(LayerCheck, Convolutions) {
  for (const size_t kernel : {size_t{0}, size_t{4}, size_t{65}}) {
    EXPECT_TRUE(RefusesLayer([&](L& l) { l.convolution = ConvolutionConfig{.kernel = kernel}; },
                             {"layers[1].convolution.kernel is " + std::to_string(kernel) +
                              "; wanted an odd number up to 63"}));
  }
  EXPECT_TRUE(RefusesLayer(
      [](L& l) { l.convolution = ConvolutionConfig{.activation = static_cast<Activation>(9)}; },
      {"layers[1].convolution.activation is number 9"}));
  EXPECT_TRUE(RefusesLayer([](L& l) { l.convolution = ConvolutionConfig{}; },
                           {"layers.1.convolution.weight is missing; wanted shape [8, 24]"}));
}

TEST(LayerCheck, NumberOfLayersAndTheFinalNorm) {
  EXPECT_TRUE(Refuses([](C& c) { c.layers.push_back(c.layers[0]); },
                      {"weights have 2 layers", "as many as the configuration has, 3"}));
  EXPECT_TRUE(Refuses([](C& c) { c.final_norm.type = NormType::kNone; },
                      {"norm.weight is given and final_norm.type is kNone; wanted none"}));
  const std::vector<float> memory(20, 1.0f);
  const EncoderModel model(Good());
  EncoderWeights w = model.weights();
  w.norm.weight = ConstView(memory.data(), {8, 1});
  EXPECT_TRUE(FailsWith(Encoder::Create(Good(), w), {"norm.weight has shape [8, 1]", "[8]"}));
  w = model.weights();
  w.norm.bias = ConstView(memory.data(), Shape(9));
  EXPECT_TRUE(FailsWith(Encoder::Create(Good(), w), {"norm.bias has shape [9]", "wanted [8]"}));
  w.norm.bias = {};
  w.norm.weight = {};
  EXPECT_TRUE(Encoder::Create(Good(), w).ok()) << "both may be missing";
}

// Each tensor that a layer may have: missing, misshapen, of another type, without a place.
TEST(LayerCheck, EveryTensor) {
  EncoderConfig config = Good();
  L& layer = config.layers[1];
  layer.qk_norm.type = NormType::kRmsNorm;
  layer.buckets = BucketConfig{};
  layer.gate = Gate::kFirstHalf;
  EncoderConfig both = config;
  both.layers[1].norm_placement = NormPlacement::kBoth;
  EncoderConfig experts = Good();
  experts.layers[1].experts = ExpertsConfig{.num_experts = 3};
  experts.layers[1].layer_input = LayerInputConfig{.width = 5};
  experts.layers[1].convolution = ConvolutionConfig{};
  const std::vector<float> memory(1000, 1.0f);
  size_t refused = 0;
  for (const bool fused : {false, true}) {
    for (const EncoderConfig& c : {config, both, experts}) {
      const EncoderModel model(c, {.fused_qkv = fused, .fused_first = fused, .layer_scale = true});
      ASSERT_TRUE(Encoder::Create(c, model.weights()).ok());
      for (const internal::LayerTensor& tensor : internal::kLayerTensors) {
        // Of inputs, scales may stand beside weights of any type (scale_check_test.cc).
        if (tensor.role == internal::TensorRole::kInputScale) continue;
        SCOPED_TRACE(tensor.name());
        const std::string name = "layers.1." + tensor.name();
        EncoderWeights w = model.weights();
        WeightView& view = tensor.In(w.layers[1]);
        const Shape wanted = internal::ShapeOf(tensor, 8, c.layers[1]);
        if (view.empty()) {
          view = ConstView(memory.data(), wanted);
          // A fused weight beside three or two takes the place of those, which then have none.
          EXPECT_TRUE(FailsWith(Encoder::Create(c, w), {(tensor.required() && !fused ? "" : name),
                                                        " is given and ", "wanted none"}));
          ++refused;
          continue;
        }
        for (const Shape& shape : {Shape(7), Shape(8, 9), Shape(8, 12, 1), Shape()}) {
          view = ConstView(memory.data(), shape);
          EXPECT_TRUE(FailsWith(Encoder::Create(c, w), {name + " has shape " + shape.ToString(),
                                                        "wanted " + wanted.ToString()}));
        }
        view = WeightView(DType::kI32, memory.data(), wanted);
        EXPECT_TRUE(
            FailsWith(Encoder::Create(c, w), {name + " has dtype I32; wanted F32, F64, F16" +
                                              (tensor.is_matrix() ? ", BF16 or I8" : " or BF16")}));
        view = {};
        // The other form is meant where the only weight of a form is missing.
        if (!tensor.required()) {
          EXPECT_TRUE(Encoder::Create(c, w).ok());
        } else {
          EXPECT_TRUE(FailsWith(Encoder::Create(c, w), {" is missing; wanted shape ["}) ||
                      FailsWith(Encoder::Create(c, w), {" is given and "}));
        }
      }
    }
  }
  EXPECT_GT(refused, 20u);
}

TEST(LayerCheck, TensorsWithoutAPlace) {
  const std::vector<float> memory(1000, 1.0f);
  const auto refuses = [&](const EncoderConfig& config, internal::LayerMember member,
                           const Shape& shape, const std::vector<std::string>& parts) {
    const EncoderModel model(config);
    EncoderWeights w = model.weights();
    const internal::LayerTensor weight{&internal::PartOf(member), internal::TensorRole::kWeight};
    weight.In(w.layers[0]) = ConstView(memory.data(), shape);
    return FailsWith(Encoder::Create(config, w), parts);
  };
  using W = EncoderLayerWeights;
  EXPECT_TRUE(refuses(Good(), &W::gate_proj, {12, 8},
                      {"layers.0.gate_proj.weight is given and the layer is not gated"}));
  EXPECT_TRUE(refuses(Good(), &W::q_norm, Shape(4),
                      {"layers.0.self_attn.q_norm.weight", "the layer has no qk_norm"}));
  EXPECT_TRUE(refuses(Good(), &W::position_bias, {32, 2},
                      {"layers.0.self_attn.position_bias", "the layer has no buckets"}));
  EXPECT_TRUE(refuses(Good(), &W::post_norm1, Shape(8),
                      {"layers.0.post_norm1.weight", "does not have norms on both sides"}));
  EXPECT_TRUE(refuses(Good(), &W::k_proj, {8, 8},
                      {"layers.0.self_attn.k_proj.weight", "in_proj_weight is given too"}));
  EncoderConfig config = Good();
  config.layers[0].norm_placement = NormPlacement::kBoth;
  EXPECT_TRUE(refuses(config, &W::layer_scale1, Shape(8),
                      {"layers.0.layer_scale1", "the layer has norms on both sides"}));
  config.layers[0].norm_placement = NormPlacement::kPre;
  config.layers[0].attention_norm = false;
  EXPECT_TRUE(refuses(config, &W::norm1, Shape(8),
                      {"layers.0.norm1.weight", "the layer has no attention_norm"}));
  const EncoderModel apart(Good(), {.fused_qkv = false});
  EncoderWeights w = apart.weights();
  w.layers[1].k_proj.weight = {};
  EXPECT_TRUE(FailsWith(Encoder::Create(Good(), w),
                        {"layers.1.self_attn.k_proj.weight is missing; wanted shape [8, 8]"}));
}

}  // namespace
}  // namespace encore
