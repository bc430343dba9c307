// SPDX-License-Identifier: Apache-2.0
//
// Options by their names, and encore's tensors as numpy arrays.

#include "python/src/model_options.h"

#include <array>
#include <charconv>
#include <memory>
#include <utility>

namespace pyencore {

using encore::LayerMatrix;
using encore::PoolingMode;

PoolingMode PoolingFromName(const std::string& name) {
  std::string known;
  for (const PoolingMode mode :
       {PoolingMode::kCls, PoolingMode::kMax, PoolingMode::kMean, PoolingMode::kMeanSqrtLength,
        PoolingMode::kWeightedMean, PoolingMode::kLastToken}) {
    if (encore::PoolingModeName(mode) == name) return mode;
    known += (known.empty() ? "" : ", ") + std::string(encore::PoolingModeName(mode));
  }
  Raise(encore::InvalidArgument("pooling has '" + name + "'; wanted one of " + known));
}

encore::MatrixOfLayer MatrixFromName(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, LayerMatrix>, 4> kMatrices = {
      {{"qkv", LayerMatrix::kQkv},
       {"out_proj", LayerMatrix::kOutProj},
       {"linear1", LayerMatrix::kLinear1},
       {"linear2", LayerMatrix::kLinear2}}};
  size_t layer = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, layer);
  if (error == std::errc() && rest != end && *rest == '.') {
    const std::string_view matrix(rest + 1, static_cast<size_t>(end - rest - 1));
    for (const auto& [known, value] : kMatrices) {
      if (matrix == known) return {layer, value};
    }
  }
  Raise(encore::InvalidArgument("keep has '" + name +
                                "'; wanted a layer and qkv, out_proj, linear1 or linear2, such as "
                                "'0.linear1'"));
}

}  // namespace pyencore
