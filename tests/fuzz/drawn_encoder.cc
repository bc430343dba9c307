// SPDX-License-Identifier: Apache-2.0
//
// Draws an encoder, and spoils one in four.

#include "tests/fuzz/drawn_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/bf16.h"
#include "engine/nn/layer_tensors.h"
#include "tests/support/precisions.h"

namespace encore::fuzz {
namespace {

using internal::kLayerTensors;
using internal::LayerTensor;
using internal::TensorRole;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr size_t kMost = std::numeric_limits<size_t>::max();

// No operation may read here.
const void* const kNowhere = reinterpret_cast<const void*>(uintptr_t{64});

EncoderConfig DrawAnyConfig(Draw& draw) {
  return DrawConfig(draw, draw.Chance(64) ? DrawnSizes::kUsual : DrawnSizes::kSmall);
}

// The index of a tensor of this layer that is given; of the first one if many draws find none.
const LayerTensor& DrawTensor(Draw& draw, const EncoderLayerWeights& layer) {
  for (size_t i = 0; i < 100; ++i) {
    const LayerTensor& tensor = kLayerTensors[draw.Between(0, kLayerTensors.size() - 1)];
    if (!tensor.In(layer).empty()) return tensor;
  }
  return *std::find_if(kLayerTensors.begin(), kLayerTensors.end(),
                       [&](const LayerTensor& tensor) { return !tensor.In(layer).empty(); });
}

// Another shape than the view's.
Shape WrongShape(Draw& draw, const Shape& shape) {
  const size_t first = shape[0];
  switch (draw.Between(0, 5)) {
    case 0:
      return shape.rank() == 2 ? Shape(first + 1, shape[1]) : Shape(first + 1);
    case 1:
      return shape.rank() == 2 ? Shape(first, shape[1] - 1) : Shape(first - 1);
    case 2:
      return shape.rank() == 2 ? Shape(first) : Shape(first, 1);
    case 3:
      return Shape(kMost, kMost);
    case 4:
      return {};
    default:
      return shape.rank() == 2 ? Shape(first, kMost) : Shape(size_t{1} << 62);
  }
}

}  // namespace

DrawnEncoder::DrawnEncoder(Draw& draw) : config_(DrawAnyConfig(draw)), source_(draw.Seed()) {
  if (draw.Chance(3)) DrawExtremes(draw);
  kind_ = draw.Chance(4) ? DrawNumbers(draw) : Numbers::kTame;
  if (kind_ != Numbers::kTame) has_reference_ = false;
  weights_ = MakeWeights(config_, DrawChoices(draw, config_),
                         [&](const NewWeight& weight) { return DrawWeight(draw, weight); });
  DrawScales(draw);
  DrawOptions(draw);
  if (draw.Chance(8)) {
    SpoilWeights(draw);
  } else if (draw.Chance(8)) {
    SpoilConfig(draw);
  }
}

// Values that are allowed and far from usual.
void DrawnEncoder::DrawExtremes(Draw& draw) {
  LayerConfig& layer = config_.layers[draw.Between(0, config_.num_layers() - 1)];
  constexpr double kEpsilons[] = {0, 1e-300, 1e-12, 1, 1e30, 1e308};
  constexpr double kScales[] = {-1, 1e-45, 1e-30, 1e30, 3e38};
  switch (draw.Between(0, 7)) {
    case 0:
      layer.norm.epsilon = kEpsilons[draw.Between(0, 5)];
      break;
    case 1:
      layer.qk_norm.epsilon = kEpsilons[draw.Between(0, 5)];
      break;
    case 2:
      layer.attention_scale = kScales[draw.Between(0, 4)];
      break;
    case 3:
      layer.window = draw.Chance(2) ? kMost : kMost / 2;
      break;
    case 4:
      if (layer.rotary) layer.rotary->theta = draw.Chance(2) ? 1e308 : 1e-300;
      break;
    case 5:
      if (layer.rotary) {
        layer.rotary->inverse_frequencies.assign(layer.rotary->size / 2, 1e308);
      }
      break;
    case 6:
      if (layer.alibi) layer.alibi->slopes.assign(layer.num_heads, -3e38);
      break;
    default:
      layer.norm.weight_offset = 3e38;
      break;
  }
  has_reference_ = false;
}

template <typename T, typename FromFloat>
WeightView DrawnEncoder::Store(std::deque<DrawnView<T>>& memory, Draw& draw, DType type,
                               const Shape& shape, const FromFloat& from_float) {
  const Layout layout = draw.Chance(4) ? Layout::kInput : Layout::kOutputRows;
  DrawnView<T>& stored = memory.emplace_back(draw, shape, layout);
  for (T& element : stored.memory()) element = from_float(source_.Next(kind_));
  // Rows that are equal have errors that are equal, which add up.
  if (stored.folded()) has_reference_ = false;
  return WeightView(type, stored.view().data(), shape, stored.view().strides());
}

WeightView DrawnEncoder::DrawWeight(Draw& draw, const NewWeight& weight) {
  const bool norm = weight.kind == WeightKind::kNormWeight;
  const float mean = norm ? static_cast<float>(1 - weight.weight_offset) : 0;
  const float deviation = weight.kind == WeightKind::kMatrix
                              ? 1.7f / std::sqrt(static_cast<float>(weight.inputs))
                              : 0.2f;
  const auto scaled = [=](float v) { return mean + deviation * v; };
  // The other matrices take floats alone.
  const bool may_be_int8 =
      std::any_of(kLayerTensors.begin(), kLayerTensors.end(), [&](const LayerTensor& tensor) {
        return tensor.role == TensorRole::kWeight && tensor.part->matrix &&
               tensor.name() == weight.name;
      });
  if (may_be_int8 && draw.Chance(8)) {
    has_reference_ = false;  // which does not know of int8
    return Store(bytes_, draw, DType::kI8, weight.shape,
                 [](float v) { return static_cast<int8_t>(v >= -1 && v <= 1 ? 127 * v : -128); });
  }
  switch (weight.type) {
    case DType::kBF16:
      return Store(halves_, draw, weight.type, weight.shape,
                   [&](float v) { return internal::F32ToBf16(scaled(v)); });
    case DType::kF16:
      return Store(halves_, draw, weight.type, weight.shape,
                   [&](float v) { return internal::F32ToF16(scaled(v)); });
    case DType::kF64:
      return Store(doubles_, draw, weight.type, weight.shape,
                   [&](float v) { return static_cast<double>(scaled(v)); });
    default:
      return Store(floats_, draw, DType::kF32, weight.shape, scaled);
  }
}

void DrawnEncoder::DrawScales(Draw& draw) {
  const auto positive = [](float v) { return 0.01f + std::fabs(v); };
  for (size_t i = 0; i < config_.num_layers(); ++i) {
    EncoderLayerWeights& layer = weights_.layers[i];
    const Numbers kind = std::exchange(kind_, Numbers::kTame);
    for (const LayerTensor& tensor : kLayerTensors) {
      const LayerTensor weight{tensor.part, TensorRole::kWeight};
      const bool of_rows =
          tensor.role == TensorRole::kRowScale && weight.In(layer).dtype() == DType::kI8;
      const bool of_inputs = tensor.role == TensorRole::kInputScale &&
                             tensor.WhyAbsent(config_.layers[i]).empty() && draw.Chance(16);
      if (!of_rows && !of_inputs) continue;
      const Shape shape = internal::ShapeOf(tensor, config_.d_model, config_.layers[i]);
      tensor.In(layer) = Store(floats_, draw, DType::kF32, shape, positive);
      has_reference_ = false;
    }
    kind_ = kind;
  }
}

void DrawnEncoder::DrawOptions(Draw& draw) {
  options_.precision = kPrecisions[draw.Chance(2) ? 0 : draw.Between(0, 3)];
  options_.amx_bf16 = draw.Chance(4);
  if (!IsInteger(options_.precision)) return;
  while (draw.Chance(3)) {
    options_.keep.push_back({.layer = draw.Between(0, config_.num_layers() - 1),
                             .matrix = static_cast<LayerMatrix>(draw.Between(0, 3))});
  }
}

void DrawnEncoder::SpoilWeights(Draw& draw) {
  EncoderLayerWeights& layer = weights_.layers[draw.Between(0, config_.num_layers() - 1)];
  const LayerTensor& tensor = DrawTensor(draw, layer);
  WeightView& view = tensor.In(layer);
  const Shape shape = view.shape();
  switch (draw.Between(0, 4)) {
    case 0:
      fault_ = "a tensor of another shape";
      view = WeightView(view.dtype(), kNowhere, WrongShape(draw, shape));
      break;
    case 1:
      fault_ = "a tensor of a type that no weight has";
      view = WeightView(draw.Chance(2) ? DType::kI64 : DType::kBool, kNowhere, shape);
      break;
    case 2:
      fault_ = "no layers";
      weights_.layers.clear();
      break;
    case 3:
      fault_ = "a layer too many";
      weights_.layers.push_back(weights_.layers[0]);
      break;
    default:
      if (!tensor.required()) return;
      fault_ = "a tensor that is missing";
      view = {};
      break;
  }
}

void DrawnEncoder::SpoilConfig(Draw& draw) {
  LayerConfig& layer = config_.layers[draw.Between(0, config_.num_layers() - 1)];
  fault_ = "a switch";
  switch (draw.Between(0, 19)) {
    case 0:
      config_.d_model = draw.Chance(2) ? 0 : size_t{1} << 60;
      break;
    case 1:
      layer.num_heads = draw.Chance(2) ? 0 : kMost;
      break;
    case 2:
      layer.num_kv_heads = layer.num_heads + 1;
      break;
    case 3:
      layer.head_size = draw.Chance(2) ? kMost : kMost / 64;
      break;
    case 4:
      layer.d_ff = draw.Chance(2) ? 0 : kMost / 2;
      break;
    case 5:
      config_.layers.clear();
      break;
    case 6:
      layer.norm.epsilon = draw.Chance(2) ? -1 : kNan;
      break;
    case 7:
      layer.norm.type = draw.Chance(2) ? NormType::kNone : static_cast<NormType>(200);
      break;
    case 8:
      layer.activation = static_cast<Activation>(draw.Between(5, 255));
      break;
    case 9:
      layer.gate = static_cast<Gate>(draw.Between(3, 255));
      break;
    case 10:
      layer.norm_placement = static_cast<NormPlacement>(draw.Between(3, 255));
      break;
    case 11:
      layer.attention_scale = draw.Chance(2) ? kInf : 1e39;
      break;
    case 12:
      layer.window = 0;
      break;
    case 13:
      layer.rotary = RotaryConfig{.size = 2 * draw.Between(0, 1) + 1};
      break;
    case 14:
      layer.rotary = RotaryConfig{.size = draw.Chance(2) ? kMost - 1 : 0, .theta = -1};
      break;
    case 15:
      layer.alibi = AlibiConfig{std::vector<double>(layer.num_heads + 1)};
      break;
    case 16:
      layer.buckets = BucketConfig{.num_buckets = draw.Chance(2) ? 6 : kMost - 3};
      break;
    case 17:
      layer.buckets = BucketConfig{.max_distance = draw.Chance(2) ? 8 : kMost};
      break;
    case 18:
      options_.keep.assign(1, {.layer = config_.num_layers(),
                               .matrix = static_cast<LayerMatrix>(draw.Between(0, 3))});
      break;
    default:
      config_.final_norm.type = NormType::kLayerNorm;
      config_.final_norm.weight_offset = kInf;
      break;
  }
}

}  // namespace encore::fuzz
