// SPDX-License-Identifier: Apache-2.0
//
// --nhead, --activation, --eps and --norm-first: what no tensor of a file of weights tells, for
// commands that read one. Not here: the file's own metadata (encore/torch_weights.h).

#ifndef ENCORE_TOOLS_ENCORE_TORCH_OPTIONS_H_
#define ENCORE_TOOLS_ENCORE_TORCH_OPTIONS_H_

#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "encore/torch_weights.h"

namespace encore::tool {

struct TorchOptions {
  std::optional<int> nhead;  // signed, or -2 would pass for 2^64 - 2
  std::string activation;    // empty: not given
  std::optional<double> eps;
  bool norm_first = false;
  CLI::Option* norm_first_option = nullptr;

  // This object must stay where it is until the command line has been read.
  void AddTo(CLI::App& app);

  // Throws Failure where one has a value that it cannot have.
  TorchOverrides overrides() const;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_TORCH_OPTIONS_H_
