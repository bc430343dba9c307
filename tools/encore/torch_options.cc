// SPDX-License-Identifier: Apache-2.0
//
// From options to what takes the place of metadata.

#include "tools/encore/torch_options.h"

#include <cmath>
#include <cstddef>
#include <limits>

#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {

void TorchOptions::AddTo(CLI::App& app) {
  app.add_option("--nhead", nhead, "Attention heads")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  app.add_option("--activation", activation, "relu, gelu, gelu_tanh, silu or quick_gelu")
      ->type_name("NAME");
  app.add_option("--eps", eps, "Epsilon of the layer norms");
  norm_first_option =
      app.add_flag("--norm-first,!--no-norm-first", norm_first, "Pre-norm, or post-norm");
}

TorchOverrides TorchOptions::overrides() const {
  TorchOverrides given;
  if (nhead) given.num_heads = static_cast<size_t>(*nhead);
  if (norm_first_option->count() > 0) {
    given.norm_placement = norm_first ? NormPlacement::kPre : NormPlacement::kPost;
  }
  given.epsilon = eps;
  if (eps && !(std::isfinite(*eps) && *eps >= 0)) {
    throw Failure("--eps is " + Number(*eps, 6) + ", wanted a finite number of at least 0");
  }
  if (!activation.empty()) given.activation = Take(ActivationFromName(activation), "--activation");
  return given;
}

}  // namespace encore::tool
