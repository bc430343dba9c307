// SPDX-License-Identifier: Apache-2.0
//
// The names of precisions and of a layer's matrices on the command line.

#include "tools/encore/precision_options.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

constexpr std::pair<std::string_view, LayerMatrix> kMatrices[] = {
    {"qkv", LayerMatrix::kQkv},
    {"out_proj", LayerMatrix::kOutProj},
    {"linear1", LayerMatrix::kLinear1},
    {"linear2", LayerMatrix::kLinear2}};

bool ParseMatrix(std::string_view text, MatrixOfLayer* matrix) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, matrix->layer);
  if (error != std::errc() || rest == end || *rest != '.') return false;
  const std::string_view name(rest + 1, static_cast<size_t>(end - rest - 1));
  for (const auto& [known, value] : kMatrices) {
    matrix->matrix = value;
    if (name == known) return true;
  }
  return false;
}

}  // namespace

std::string MatrixName(const MatrixOfLayer& matrix) {
  const auto named = [&](const auto& entry) { return entry.second == matrix.matrix; };
  const auto* const found = std::find_if(std::begin(kMatrices), std::end(kMatrices), named);
  return std::to_string(matrix.layer) + "." + std::string(found->first);
}

CLI::Option* PrecisionOptions::AddTo(CLI::App& app) {
  CLI::Option* const option =
      app.add_option("--precision", name,
                     "What products multiply: f32; bf16 or int8, which are faster and less exact; "
                     "else what the weights were made for (`encore convert`), or f32")
          ->check(CLI::IsMember({"f32", "bf16", "int8"}));
  app.add_option("--keep", keep, "Of int8: matrices in bf16 instead, e.g. 0.linear1,5.out_proj")
      ->delimiter(',')
      ->type_name("LAYER.MATRIX")
      ->needs(option);
  return option;
}

void PrecisionOptions::AddAmxTo(CLI::App& app) {
  app.add_flag("--amx-bf16", amx_bf16, kAmxBf16Help);
}

std::optional<Precision> PrecisionOptions::precision() const {
  if (name.empty()) return std::nullopt;
  return Take(PrecisionFromName(name));
}

std::vector<MatrixOfLayer> PrecisionOptions::kept() const {
  std::vector<MatrixOfLayer> matrices;
  for (const std::string& text : keep) {
    if (!ParseMatrix(text, &matrices.emplace_back())) {
      throw Failure("--keep: found '" + Printable(text) +
                    "', wanted a layer's number from 0, a point, and qkv, out_proj, linear1 or "
                    "linear2: 0.linear1");
    }
  }
  return matrices;
}

}  // namespace encore::tool
