// SPDX-License-Identifier: Apache-2.0
//
// --precision and --keep, for commands that compute with an encoder. Not here: what each precision
// computes (encore/precision.h).

#ifndef ENCORE_TOOLS_ENCORE_PRECISION_OPTIONS_H_
#define ENCORE_TOOLS_ENCORE_PRECISION_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "encore/precision.h"

namespace encore::tool {

inline constexpr char kAmxBf16Help[] =
    "Of bf16: multiply by AMX where the machine has it; faster, other bits than elsewhere";

// As --keep has it: "0.linear1".
std::string MatrixName(const MatrixOfLayer& matrix);

struct PrecisionOptions {
  std::string name;               // empty: not given
  std::vector<std::string> keep;  // "0.linear1": layer, counted from 0, and matrix
  bool amx_bf16 = false;

  // Adds both, and returns --precision. This object must stay where it is until the command line
  // has been read.
  CLI::Option* AddTo(CLI::App& app);
  // And --amx-bf16, for commands that run a model.
  void AddAmxTo(CLI::App& app);

  // Nothing where the option was not given.
  std::optional<Precision> precision() const;
  // Throws Failure where an entry of --keep is no matrix. That the model has the layer is the
  // encoder's to check.
  std::vector<MatrixOfLayer> kept() const;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_PRECISION_OPTIONS_H_
