// SPDX-License-Identifier: Apache-2.0
//
// The options that describe a layer and a batch by hand, for `encore bench` and `encore info`. Not
// here: sizes that have a name (bench/measure/models.h).

#ifndef ENCORE_TOOLS_ENCORE_MODEL_OPTIONS_H_
#define ENCORE_TOOLS_ENCORE_MODEL_OPTIONS_H_

#include <cstddef>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/measure/models.h"

namespace encore::tool {

struct ModelOptions {
  // BERT base, one sequence of 128 tokens.
  size_t d_model = 768;
  size_t heads = 12;
  size_t d_ff = 3072;
  size_t batch = 1;
  size_t seq = 128;
  std::vector<size_t> lengths;  // in place of batch and seq

  // Adds --d-model, --heads, --d-ff, --batch, --seq and --lengths. This object must stay where it
  // is until the command line has been read. Returns the options.
  std::vector<CLI::Option*> AddTo(CLI::App& app);

  // The name "custom", activation GELU. Throws Failure if the heads do not divide the width.
  bench::NamedWorkload Workload() const;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_MODEL_OPTIONS_H_
