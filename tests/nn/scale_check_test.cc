// SPDX-License-Identifier: Apache-2.0
//
// Encoders of int8 weights with scales: what they compute in each precision, and every sentence of
// engine/nn/weights_check.cc.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "engine/nn/layer_tensors.h"
#include "engine/ops/weight_source.h"
#include "gtest/gtest.h"
#include "reference/encoder_model.h"
#include "tests/support/compare.h"
#include "tests/support/near_rounded.h"
#include "tests/support/precisions.h"
#include "tests/support/weights_file.h"

namespace encore {
namespace {

using internal::kLayerTensors;
using internal::LayerTensor;

constexpr size_t kScaleWidth = 32;

EncoderConfig Config(Gate gate = Gate::kNone) {
  return EncoderConfig::Uniform(
      kScaleWidth, 2, {.num_heads = 2, .d_ff = 48, .activation = Activation::kGelu, .gate = gate});
}

// Weights of a drawn model in int8, and the floats that these stand for.
struct Integers {
  explicit Integers(const EncoderModel& model, bool with_input_scales)
      : int8(model.weights()), floats(model.weights()) {
    for (size_t i = 0; i < int8.layers.size(); ++i) {
      for (const LayerTensor& tensor : kLayerTensors) {
        if (tensor.is_matrix() && !tensor.In(int8.layers[i]).empty()) {
          Quantise(tensor, i, with_input_scales);
        }
      }
    }
  }

  // Rows have scales that are powers of two, so have columns: every step here is exact.
  void Quantise(const LayerTensor& tensor, size_t i, bool smoothed) {
    const WeightView view = tensor.In(int8.layers[i]);
    const size_t rows = view.dim(0);
    const size_t columns = view.dim(1);
    std::vector<float> numbers(rows * columns);
    internal::ReadRows(internal::WeightSource::One(view), 0, rows, 0, columns, numbers.data(),
                       columns);
    std::vector<int8_t>& integers = integers_.emplace_back(rows * columns);
    std::vector<float>& scales = floats_.emplace_back(rows);
    std::vector<float>& smoothing = floats_.emplace_back(columns, 1.0f);
    for (size_t c = 0; smoothed && c < columns; ++c) smoothing[c] = c % 3 == 0 ? 0.25f : 1.0f;
    for (size_t r = 0; r < rows; ++r) {
      scales[r] = r % 5 < 2 ? 0x1p-8f : 0x1p-9f;
      for (size_t c = 0; c < columns; ++c) {
        float& number = numbers[r * columns + c];
        const float q = std::clamp(std::round(number / scales[r]), -128.0f, 127.0f);
        integers[r * columns + c] = static_cast<int8_t>(q);
        number = q * scales[r] / smoothing[c];
      }
    }
    std::vector<float>& stands_for = floats_.emplace_back(std::move(numbers));
    tensor.In(floats.layers[i]) = ConstView(stands_for.data(), {rows, columns});
    tensor.In(int8.layers[i]) = WeightView(DType::kI8, integers.data(), {rows, columns});
    (int8.layers[i].*tensor.part->member.linear).scale = ConstView(scales.data(), Shape(rows));
    if (!smoothed) return;
    for (const LayerTensor& input : kLayerTensors) {
      if (input.part->matrix != tensor.part->matrix ||
          input.role != internal::TensorRole::kInputScale ||
          input.part->input_scale_of != input.part->member.linear) {
        continue;
      }
      input.In(int8.layers[i]) = ConstView(smoothing.data(), Shape(columns));
      input.In(floats.layers[i]) = ConstView(smoothing.data(), Shape(columns));
    }
  }

  EncoderWeights int8;
  EncoderWeights floats;

 private:
  std::deque<std::vector<int8_t>> integers_;
  std::deque<std::vector<float>> floats_;
};

std::vector<float> Output(const EncoderConfig& config, const EncoderWeights& weights,
                          Precision precision) {
  const Encoder encoder = Taken(Encoder::Create(config, weights, {.precision = precision}));
  return Forward(encoder, Batch{.seq_starts = {0, 3, 10}}, RandomFloats(10 * kScaleWidth, 7));
}

// In f32 and bf16, int8 weights are the floats that they stand for, smoothed or not.
TEST(ScaleCheck, Int8WeightsStandForFloats) {
  for (const Gate gate : {Gate::kNone, Gate::kFirstHalf, Gate::kSecondHalf}) {
    for (const bool fused : {true, false}) {
      const EncoderModel model(Config(gate), {.fused_qkv = fused, .fused_first = fused});
      for (const bool smoothed : {false, true}) {
        SCOPED_TRACE(testing::Message() << "gate " << static_cast<int>(gate) << ", fused " << fused
                                        << ", smoothed " << smoothed);
        const Integers made(model, smoothed);
        for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
          EXPECT_TRUE(SameBits(Output(Config(gate), made.int8, precision),
                               Output(Config(gate), made.floats, precision)));
        }
      }
    }
  }
}

// Every scale counts, those of inputs too.
TEST(ScaleCheck, Int8WeightsAreTakenAsTheyAre) {
  const EncoderModel model(Config());
  const Integers made(model, true);
  const std::vector<float> y = Output(Config(), made.int8, Precision::kInt8);
  // Each differs in one thing that counts.
  EncoderWeights other = made.int8;
  other.layers[1].linear1.input_scale = {};
  EXPECT_FALSE(SameBits(Output(Config(), other, Precision::kInt8), y));
  other = made.int8;
  other.layers[1].linear2.input_scale = {};
  EXPECT_FALSE(SameBits(Output(Config(), other, Precision::kInt8), y));
  other = made.int8;
  std::vector<float> scales(3 * kScaleWidth, 0x1p-7f);
  other.layers[0].in_proj.scale = ConstView(scales.data(), Shape(3 * kScaleWidth));
  EXPECT_FALSE(SameBits(Output(Config(), other, Precision::kInt8), y));
  // And it is near what the floats give, without scales of inputs too: then none are made up.
  const Integers plain(model, false);
  for (const Integers* integers : {&made, &plain}) {
    EXPECT_LT(RelativeSquare(Output(Config(), integers->int8, Precision::kInt8),
                             Output(Config(), integers->floats, Precision::kF32)),
              1e-3);
  }
}

// Scales that are given take the place of those that packing would find; all ones are as none.
TEST(ScaleCheck, FloatWeightsTakeGivenInputScales) {
  const EncoderModel model(Config());
  const std::vector<float> own = Output(Config(), model.weights(), Precision::kInt8);
  const std::vector<float> f32 = Output(Config(), model.weights(), Precision::kF32);
  EncoderWeights w = model.weights();
  std::vector<float> scales(64, 1.0f);
  scales[3] = 0.01f;
  w.layers[0].linear2.input_scale = ConstView(scales.data(), Shape(48));
  EXPECT_FALSE(SameBits(Output(Config(), w, Precision::kInt8), own));
  EXPECT_TRUE(SameBits(Output(Config(), w, Precision::kF32), f32)) << "floats are as they were";
  scales[3] = 1.0f;
  EXPECT_TRUE(SameBits(Output(Config(), w, Precision::kInt8), own));
  w.layers[0].linear2.input_scale = {};
  w.layers[0].linear1.input_scale = ConstView(scales.data(), Shape(kScaleWidth));
  EXPECT_FALSE(SameBits(Output(Config(), w, Precision::kInt8), own)) << "not its own";
}

testing::AssertionResult RefusesScales(const EncoderWeights& weights,
                                       const std::vector<std::string>& parts) {
  for (const Precision precision : kPrecisions) {
    const testing::AssertionResult refused =
        FailsWith(Encoder::Create(Config(), weights, {.precision = precision}), parts);
    if (!refused) return refused;
  }
  return testing::AssertionSuccess();
}

TEST(ScaleCheck, EveryBadScale) {
  const EncoderModel model(Config());
  const Integers made(model, true);
  const struct {
    float value;
    std::string found;
  } bad[] = {{0.0f, "is 0;"},
             {-0.5f, "is -0.5;"},
             {std::numeric_limits<float>::quiet_NaN(), "is nan;"},
             {std::numeric_limits<float>::infinity(), "is inf;"},
             {1e-40f, "is 9.9"}};
  size_t scales_seen = 0;
  for (const LayerTensor& tensor : kLayerTensors) {
    const std::string name = "layers.1." + tensor.name();
    EncoderWeights w = made.int8;
    WeightView& view = tensor.In(w.layers[1]);
    if (view.empty() || !tensor.is_scale()) continue;
    ++scales_seen;
    std::vector<float> numbers(view.dim(0), 1.0f);
    view = ConstView(numbers.data(), view.shape());
    ASSERT_TRUE(Encoder::Create(Config(), w).ok());
    for (const auto& [value, found] : bad) {
      numbers[5] = value;
      EXPECT_TRUE(
          RefusesScales(w, {name + "[5] ", found, "wanted a finite, normal f32 number above 0"}));
    }
    numbers[5] = 1;
    view = ConstView(numbers.data(), Shape(numbers.size() - 1));
    EXPECT_TRUE(RefusesScales(w, {name + " has shape [", "wanted ["}));
    view = {};
    if (tensor.role == internal::TensorRole::kInputScale) {
      EXPECT_TRUE(Encoder::Create(Config(), w).ok());
    } else {
      const std::string weight = name.substr(0, name.size() - std::string("_scale").size());
      EXPECT_TRUE(RefusesScales(
          w, {name + " is missing; wanted shape [", "as " + weight + " has dtype I8"}));
    }
  }
  EXPECT_EQ(scales_seen, 8u);
}

TEST(ScaleCheck, FloatWeightsHaveNoRowScales) {
  const EncoderModel model(Config());
  const std::vector<float> scales(96, 1.0f);
  EncoderWeights w = model.weights();
  w.layers[1].linear2.scale = ConstView(scales.data(), Shape(kScaleWidth));
  EXPECT_TRUE(
      RefusesScales(w, {"layers.1.linear2.weight_scale is given and layers.1.linear2.weight has "
                        "dtype F32; wanted none"}));
  w = model.weights();
  w.layers[1].linear2.bias = WeightView(DType::kI8, scales.data(), Shape(kScaleWidth));
  EXPECT_TRUE(
      RefusesScales(w, {"layers.1.linear2.bias has dtype I8; wanted F32, F64, F16 or BF16"}));
}

}  // namespace
}  // namespace encore
