// SPDX-License-Identifier: Apache-2.0
//
// torch's activations by the names of their classes, as Dense modules and cross-encoders spell
// them: with the arguments that a class has by default, as they come without any.

#ifndef ENCORE_ENGINE_TEXT_TORCH_ACTIVATION_H_
#define ENCORE_ENGINE_TEXT_TORCH_ACTIVATION_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace encore::inline v0_1::internal {

struct TorchActivation {
  std::string_view name;  // of the class: "GELU"
  std::string_view text;  // for Describe(): "gelu (erf)"
  // row [width], in place, in the default rounding mode. Bits depend on the values alone, and are
  // the same on every machine with FMA.
  void (*apply)(float* row, size_t width);
};

// Of "torch.nn.GELU", "torch.nn.modules.activation.GELU" and, of Identity,
// "torch.nn.modules.linear.Identity"; null for any other name. The table's own, for ever.
const TorchActivation* FindTorchActivation(std::string_view path);
// "torch.nn.modules.activation.Tanh, ...": what there is.
std::string TorchActivationNames();

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_TORCH_ACTIVATION_H_
