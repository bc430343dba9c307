// SPDX-License-Identifier: Apache-2.0
//
// The encoder against the double-precision reference, within the bounds that rounding in f32 gives,
// on every SIMD target: all options, taps included. Equal bits are in encoder_contract_test.cc.

#include <cstddef>
#include <cstdio>
#include <vector>

#include "encore/encoder.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "tests/support/attention_case.h"
#include "tests/support/check_model.h"
#include "tests/support/near_rounded.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

TEST(Encoder, EveryOption) {
  double worst = 0;
  for (const bool norm_first : {false, true}) {
    for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                        Activation::kSilu, Activation::kQuickGelu}) {
      for (const bool biases : {false, true}) {
        SCOPED_TRACE(testing::Message() << "norm_first " << norm_first << ", "
                                        << ActivationName(activation) << ", biases " << biases);
        const EncoderModel model({.d_model = 24,
                                  .num_heads = 3,
                                  .d_ff = 50,
                                  .num_layers = biases ? size_t{1} : size_t{2},
                                  .activation = activation,
                                  .norm_first = norm_first,
                                  .final_norm = norm_first},
                                 {.biases = biases});
        CheckModel(model, {7, 0, 1, 20}, &worst);
      }
    }
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

TEST(Encoder, SizesOfHeadsAndOfEverythingElse) {
  double worst = 0;
  struct Sizes {
    size_t d_model, heads, d_ff, length;
  };
  for (const Sizes& s : {Sizes{1, 1, 1, 3},
                         {2, 2, 3, 5},
                         {16, 2, 33, 9},
                         {28, 2, 100, 17},
                         {32, 1, 64, 65},
                         {64, 1, 100, 20},
                         {72, 1, 100, 6},
                         {80, 1, 31, 6},
                         {128, 1, 40, 5},
                         {96, 4, 7, 33},
                         {40, 40, 48, 4},
                         {48, 3, 49, 1}}) {
    for (const bool norm_first : {false, true}) {
      SCOPED_TRACE(testing::Message() << "d_model " << s.d_model << ", " << s.heads
                                      << " heads, d_ff " << s.d_ff << ", S " << s.length);
      // A width of 1 leaves a norm nothing: a large epsilon keeps its slope small.
      const EncoderModel model({.d_model = s.d_model,
                                .num_heads = s.heads,
                                .d_ff = s.d_ff,
                                .norm_first = norm_first,
                                .epsilon = s.d_model < 3 ? 0.5 : 1e-5});
      CheckModel(model, {s.length}, &worst);
    }
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

// Beyond one tile of 512 keys, and beyond one slice of K.
TEST(Encoder, LongSequencesAndWideLayers) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  double worst = 0;
  CheckModel(EncoderModel({.d_model = 8, .num_heads = 1, .d_ff = 12}), {600}, &worst);
  AttentionMask causal;
  causal.causal = true;
  CheckModel(EncoderModel({.d_model = 6, .num_heads = 2, .d_ff = 5, .norm_first = true}), {530, 3},
             &worst, causal);
  CheckModel(EncoderModel({.d_model = 4, .num_heads = 1, .d_ff = 2300}), {5}, &worst);
  std::printf("worst error %.3f of the bound\n", worst);
}

TEST(Encoder, EveryMask) {
  double worst = 0;
  const Masks masks(70, 70);
  const EncoderModel model({.d_model = 12, .num_heads = 2, .d_ff = 20});
  for (const bool causal : {false, true}) {
    for (const bool blocked : {false, true}) {
      for (const bool additive : {false, true}) {
        SCOPED_TRACE(testing::Message() << "causal " << causal << ", blocked " << blocked
                                        << ", additive " << additive);
        AttentionMask mask;
        mask.causal = causal;
        if (blocked) mask.blocked = masks.blocked();
        if (additive) mask.additive = masks.additive();
        CheckModel(model, {70, 1, 33}, &worst, mask);
      }
    }
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

TEST(Encoder, EpsilonsAndScales) {
  double worst = 0;
  for (const double epsilon : {0.0, 1e-12, 1e-2, 10.0}) {
    for (const float scale : {1e-6f, 1.0f, 10.0f}) {
      for (const bool norm_first : {false, true}) {
        SCOPED_TRACE(testing::Message() << "epsilon " << epsilon << ", inputs of " << scale);
        const EncoderModel model({.d_model = 32,
                                  .num_heads = 2,
                                  .d_ff = 40,
                                  .norm_first = norm_first,
                                  .epsilon = epsilon});
        CheckModel(model, {9}, &worst, {}, scale);
      }
    }
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

TEST(Encoder, ThreeLayersWithAndWithoutFinalNorm) {
  double worst = 0;
  for (const bool norm_first : {false, true}) {
    for (const bool final_norm : {false, true}) {
      const EncoderModel model({.d_model = 20,
                                .num_heads = 2,
                                .d_ff = 30,
                                .num_layers = 3,
                                .activation = Activation::kGelu,
                                .norm_first = norm_first,
                                .final_norm = final_norm});
      CheckModel(model, {5, 12}, &worst);
    }
  }
  std::printf("worst error %.3f of the bound\n", worst);
}

TEST(Encoder, ConfigAndNames) {
  const Encoder encoder = EncoderModel({.d_model = 8, .num_heads = 2, .d_ff = 5}).Make();
  ASSERT_EQ(encoder.config().num_layers(), 1u);
  const LayerConfig& layer = encoder.config().layers[0];
  EXPECT_EQ(layer.d_ff, 5u);
  EXPECT_EQ(layer.num_kv_heads, 2u);
  EXPECT_EQ(layer.head_size, 4u);
  EXPECT_EQ(layer.attention_scale, 0.5);
  for (const Activation a : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                             Activation::kSilu, Activation::kQuickGelu}) {
    const Activation found = Taken(ActivationFromName(ActivationName(a)));
    EXPECT_EQ(found, a);
  }
  EXPECT_TRUE(FailsWith(ActivationFromName("Relu"), {"activation is \"Relu\"", "wanted relu"}));
}

}  // namespace
}  // namespace encore
