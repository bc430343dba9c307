// SPDX-License-Identifier: Apache-2.0
//
// How far bf16, int8 and int4 encoders are from the double-precision reference of f32 weights, for
// every switch of a layer, on every SIMD target.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "encore/encoder.h"
#include "encore/thread_pool.h"
#include "gtest/gtest.h"
#include "reference/encoder.h"
#include "reference/encoder_model.h"
#include "reference/golden_families.h"
#include "reference/switched.h"
#include "tests/support/compare.h"
#include "tests/support/drawn_config.h"
#include "tests/support/guarded.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

// Root mean square of the error over that of the output, of one and of two layers of drawn weights
// and normally distributed inputs, which have no outliers. A rounding to bf16 is off by 2^-9 /
// sqrt(3) = 0.11 % in the mean, one to int8 by 0.3 to 0.5 % of a row of normally distributed
// numbers, one of weights to int4 by 7 to 8 %; a block has eight of them one after another. The
// second layer's norms of small rows, norms behind its products, and scores without a scale (T5)
// magnify what the first one did.
struct Bound {
  double bf16;
  double int8;
  double int4;
};
constexpr Bound kOneLayer = {6e-3, 2.5e-2, 0.2};
constexpr Bound kTwoLayers = {1.2e-2, 4e-2, 0.3};

struct Worst {
  double bf16 = 0;
  double int8 = 0;
  double int4 = 0;
  ~Worst() {
    std::printf("largest rms error: bf16 %.2e, int8 %.2e, int4 %.2e\n", bf16, int8, int4);
  }
};

double RmsError(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

void CheckModel(const EncoderModel& model, const std::vector<size_t>& lengths, Worst* worst,
                const AttentionMask& mask = {}) {
  const size_t d = model.config().d_model;
  const std::vector<size_t> starts = Starts(lengths);
  const std::vector<float> x = RandomFloats(starts.back() * d, 99);
  std::vector<double> want;
  for (size_t b = 0; b < lengths.size(); ++b) {
    const ConstView sequence(x.data() + starts[b] * d, Shape(lengths[b], d));
    const auto result = reference::Encode<double>(model.config(), model.weights(), sequence, mask);
    want.insert(want.end(), result.y.data.begin(), result.y.data.end());
  }
  ForEachTarget([&](const std::string&) {
    const Batch batch{.seq_starts = starts, .mask = mask};
    const double bf16 =
        RmsError(Forward(model.Make({.precision = Precision::kBF16}), batch, x), want);
    const double int8 =
        RmsError(Forward(model.Make({.precision = Precision::kInt8}), batch, x), want);
    const double int4 =
        RmsError(Forward(model.Make({.precision = Precision::kInt4}), batch, x), want);
    const Bound& bound = model.config().num_layers() == 1 ? kOneLayer : kTwoLayers;
    EXPECT_LE(bf16, bound.bf16) << Describe(model.config());
    EXPECT_LE(int8, bound.int8) << Describe(model.config());
    EXPECT_LE(int4, bound.int4) << Describe(model.config());
    worst->int4 = std::max(worst->int4, int4);
    worst->bf16 = std::max(worst->bf16, bf16);
    worst->int8 = std::max(worst->int8, int8);
  });
}

const std::vector<size_t> kPrecisionLengths = {17, 1, 2, 65};

TEST(EncoderPrecision, NamesComeBack) {
  for (const Precision precision : kPrecisions) {
    const Precision found = Taken(PrecisionFromName(PrecisionName(precision)));
    EXPECT_EQ(found, precision);
  }
  EXPECT_EQ(PrecisionFromName("f16").status().message(),
            "precision is \"f16\"; wanted f32, bf16, int8 or int4");
}

TEST(EncoderPrecision, TorchsLayersAndSizesOfHeads) {
  Worst worst;
  for (const size_t head : {1, 3, 5, 7, 14, 16, 64, 72}) {
    for (const bool norm_first : {false, true}) {
      const size_t heads = head < 5 ? 30 / head : head < 16 ? 5 : 2;
      CheckModel(EncoderModel({.d_model = heads * head,
                               .num_heads = heads,
                               .d_ff = 131,
                               .num_layers = 2,
                               .activation = Activation::kGelu,
                               .norm_first = norm_first,
                               .final_norm = norm_first}),
                 kPrecisionLengths, &worst);
    }
  }
}

TEST(EncoderPrecision, Families) {
  Worst worst;
  for (const reference::GoldenFamily& family :
       {reference::ModernBert(), reference::Gemma(), reference::T5(), reference::Qwen3(),
        reference::Jina()}) {
    CheckModel(EncoderModel(family.config, family.choices), {33, 101}, &worst);
  }
  CheckModel(EncoderModel(RotaryAndGate()), kPrecisionLengths, &worst);
  CheckModel(EncoderModel(BucketsAndBothNorms()), kPrecisionLengths, &worst);
  CheckModel(EncoderModel(RelativeAndWindow()), kPrecisionLengths, &worst);
  CheckModel(EncoderModel(Convolutions()), kPrecisionLengths, &worst);
  // With scores of usual size: of 1 times normed heads, softmax makes more of every rounding.
  EncoderConfig inputs = LayerInputs();
  for (LayerConfig& layer : inputs.layers) layer.attention_scale = 0;
  CheckModel(EncoderModel(inputs), kPrecisionLengths, &worst);
  // All experts of every token: which are the best may change with the precision.
  EncoderConfig experts = ExpertsInTurn();
  experts.layers[1].experts->top_k = experts.layers[1].experts->num_experts;
  CheckModel(EncoderModel(experts), kPrecisionLengths, &worst);
}

TEST(EncoderPrecision, GatesActivationsAndNorms) {
  Worst worst;
  for (const Activation activation : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                      Activation::kSilu, Activation::kQuickGelu}) {
    for (const Gate gate : {Gate::kNone, Gate::kFirstHalf, Gate::kSecondHalf}) {
      for (const NormPlacement placement :
           {NormPlacement::kPost, NormPlacement::kPre, NormPlacement::kBoth}) {
        const LayerConfig layer{.num_heads = 3,
                                .d_ff = 75,
                                .activation = activation,
                                .gate = gate,
                                .norm_placement = placement};
        CheckModel(EncoderModel(EncoderConfig::Uniform(48, 1, layer)), {17, 2}, &worst);
      }
    }
  }
}

TEST(EncoderPrecision, MasksAndWindows) {
  Worst worst;
  const std::vector<float> additive = RandomFloats(140 * 140, 3);
  for (const size_t window : {1, 7, 64, 131}) {
    LayerConfig layer{.num_heads = 3, .d_ff = 75};
    layer.window = window;
    layer.causal = window == 7;
    if (window == 64) layer.alibi = AlibiConfig{};
    const EncoderModel model(EncoderConfig::Uniform(42, 1, layer));
    CheckModel(model, {135, 64, 3}, &worst);
    CheckModel(model, {135}, &worst, {.additive = {additive.data(), {140, 140}}});
  }
}

// Kept matrices are bf16 ones: with all of them an int8 encoder has the bits of a bf16 one; with
// some, its error lies between.
TEST(EncoderPrecision, KeptMatrices) {
  constexpr LayerMatrix kMatrices[] = {LayerMatrix::kQkv, LayerMatrix::kOutProj,
                                       LayerMatrix::kLinear1, LayerMatrix::kLinear2};
  const EncoderModel model(RotaryAndGate());
  const std::vector<size_t> starts = Starts(kPrecisionLengths);
  const Batch batch{.seq_starts = starts};
  const std::vector<float> x = RandomFloats(starts.back() * model.config().d_model, 5);
  ForEachTarget([&](const std::string&) {
    EncoderOptions options{.precision = Precision::kInt8};
    const std::vector<float> int8 = Forward(model.Make(options), batch, x);
    std::vector<std::vector<float>> different = {int8};
    for (size_t layer = 0; layer < 2; ++layer) {
      for (const LayerMatrix matrix : kMatrices) {
        options.keep.push_back({layer, matrix});
        different.push_back(Forward(model.Make(options), batch, x));
        EXPECT_FALSE(SameBits(different.back(), different.end()[-2])) << "a matrix was not kept";
      }
    }
    const std::vector<float> bf16 = Forward(model.Make({.precision = Precision::kBF16}), batch, x);
    EXPECT_TRUE(SameBits(different.back(), bf16));
  });
}

// Rows of zeros or with one huge number give finite results; NaN reaches its own row, and no other
// sequence.
TEST(EncoderPrecision, BytesOfPackedWeights) {
  // Two layers of 4 d^2 + 2 d d_ff elements. Extents are multiples of any vector and group.
  constexpr size_t kElements = 2 * (4 * 64 * 64 + 2 * 64 * 256);
  const EncoderModel model({.d_model = 64, .num_heads = 4, .d_ff = 256, .num_layers = 2});
  EXPECT_EQ(model.Make().packed_bytes(), 4 * kElements);
  const auto bytes = [&](Precision precision) {
    return model.Make({.precision = precision}).packed_bytes();
  };
  EXPECT_EQ(bytes(Precision::kBF16), 2 * kElements);
  // Where there is no product of 8 bits, they are widened to 16.
  EXPECT_GE(bytes(Precision::kInt8), kElements);
  EXPECT_LE(bytes(Precision::kInt8), 2 * kElements);
  // With a scale for each 32.
  EXPECT_EQ(bytes(Precision::kInt4), kElements / 2 + kElements / 32 * 2);
}

TEST(EncoderPrecision, RowsOfSpecialNumbers) {
  const EncoderModel model({.d_model = 48, .num_heads = 3, .d_ff = 100, .norm_first = true});
  const std::vector<size_t> starts = Starts({5, 4});
  const Batch batch{.seq_starts = starts};
  const std::vector<float> x = RandomFloats(9 * 48, 5);
  ForEachTarget([&](const std::string&) {
    for (const Precision precision : kPrecisions) {
      SCOPED_TRACE(PrecisionName(precision));
      const Encoder encoder = model.Make({.precision = precision});
      const std::vector<float> want = Forward(encoder, batch, x);
      for (const float value : {0.0f, -0.0f, 1e-42f, 1e15f, -1e15f}) {
        std::vector<float> odd = x;
        const bool one = std::fabs(value) > 1;  // else a whole row
        std::fill_n(odd.begin() + 2 * 48 + (one ? 7 : 0), one ? 1 : 48, value);
        const std::vector<float> y = Forward(encoder, batch, odd);
        EXPECT_TRUE(std::all_of(y.begin(), y.end(), [](float v) { return std::isfinite(v); }))
            << value;
        EXPECT_TRUE(SameBits({y.data() + 5 * 48, 4 * 48}, {want.data() + 5 * 48, 4 * 48}));
      }
      std::vector<float> bad = x;
      bad[2 * 48 + 47] = std::numeric_limits<float>::quiet_NaN();
      const std::vector<float> y = Forward(encoder, batch, bad);
      for (size_t i = 0; i < 48; ++i) EXPECT_TRUE(std::isnan(y[2 * 48 + i])) << i;
      EXPECT_TRUE(SameBits({y.data() + 5 * 48, 4 * 48}, {want.data() + 5 * 48, 4 * 48}));
    }
  });
}

TEST(EncoderPrecision, TheFirstMatrixThatInt8CannotHaveIsNamed) {
  const EncoderModel model(EncoderConfig::Uniform(48, 3, {.num_heads = 3, .d_ff = 100}));
  std::vector<float> up(100 * 48, 0.25f);
  std::vector<float> down(48 * 100, 0.25f);
  up[77] = std::numeric_limits<float>::quiet_NaN();
  down[48 * 100 - 1] = std::numeric_limits<float>::infinity();
  EncoderWeights weights = model.weights();
  const ThreadPool pool = *ThreadPool::Create({.threads = 3});
  const auto refused = [&](const std::string& matrix) {
    for (const Executor& executor : {Executor::Inline(), pool.executor(), Executor::OpenMP(3)}) {
      EXPECT_TRUE(FailsWith(Encoder::Create(model.config(), weights,
                                            {.precision = Precision::kInt8, .executor = executor}),
                            {matrix}, kAnyCode));
    }
  };
  weights.layers[2].linear1.weight = ConstView(up.data(), {100, 48});
  refused("layers.2: the weights of linear1");
  weights.layers[1].linear2.weight = ConstView(down.data(), {48, 100});
  refused("layers.1: the weights of linear2");
  weights.layers[1].linear1.weight = ConstView(up.data(), {100, 48});
  refused("layers.1: the weights of linear1");
}

TEST(EncoderPrecision, DrawnSwitches) {
  Worst worst;
  for (uint32_t seed = 0; seed < (kSlow ? 5 : 60); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    EncoderConfig config = DrawConfig(draw);
    // Rows of few numbers have few errors to average: behind a norm, one hidden number that is near
    // 0 may have any relative error.
    const bool narrow = std::any_of(config.layers.begin(), config.layers.end(),
                                    [](const LayerConfig& layer) { return layer.d_ff < 16; });
    if (config.d_model < 16 || narrow) continue;
    for (LayerConfig& layer : config.layers) {  // which are the best may change
      if (layer.experts) layer.experts->top_k = layer.experts->num_experts;
    }
    const EncoderModel model(config, DrawChoices(draw, config), draw.Seed());
    CheckModel(model, {draw.Between(1, 70), draw.Between(1, 9)}, &worst);
  }
}

}  // namespace
}  // namespace encore
