// SPDX-License-Identifier: Apache-2.0
//
// What a layer asks of the scales of int8 weights and of its products' inputs.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "engine/base/layer_tensors.h"
#include "engine/base/number_text.h"
#include "engine/nn/encoder_check.h"
#include "engine/ops/view_check.h"
#include "engine/ops/weight_source.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

// Numbers that can be multiplied by and divided by.
Status CheckNumbers(const std::string& name, const WeightView& scales) {
  const FpEnvScope modes;
  std::vector<float> numbers(scales.dim(0));
  ReadVector(scales, numbers.data());
  const auto bad = std::find_if(numbers.begin(), numbers.end(),
                                [](float s) { return !(s > 0 && std::isnormal(s)); });
  if (bad == numbers.end()) return {};
  return InvalidArgument(name + "[" + std::to_string(bad - numbers.begin()) + "] is " +
                         NumberText(*bad) + "; wanted a finite, normal f32 number above 0");
}

// Of the scale of a matrix that needs one and has none, or the other way round.
Status MissingOrNeedless(const std::string& scale, const std::string& matrix,
                         const WeightView& view) {
  const std::string type(DTypeName(view.dtype()));
  if (view.dtype() == DType::kI8) {
    return InvalidArgument(scale + " is missing; wanted shape " + Shape(view.dim(0)).ToString() +
                           ", as " + matrix + " has dtype " + type);
  }
  return InvalidArgument(scale + " is given and " + matrix + " has dtype " + type +
                         "; wanted none");
}

}  // namespace

Status CheckScales(const EncoderLayerWeights& w, const std::string& prefix) {
  for (const LayerTensor& tensor : kLayerTensors) {
    const WeightView& view = tensor.In(w);
    const std::string name = prefix + tensor.name();
    if (tensor.is_matrix() && !view.empty()) {
      const LayerTensor scale{tensor.part, TensorRole::kRowScale};
      const bool wanted = view.dtype() == DType::kI8;
      if (wanted == !scale.In(w).empty()) continue;
      return MissingOrNeedless(prefix + scale.name(), name, view);
    }
    if (tensor.is_scale() && !view.empty()) ENCORE_RETURN_IF_ERROR(CheckNumbers(name, view));
  }
  return {};
}

}  // namespace encore::internal
