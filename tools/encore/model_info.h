// SPDX-License-Identifier: Apache-2.0
//
// What encore makes of a model's folder, for `encore info FOLDER`: sizes, and every decision with
// the file that it comes from. Not here: the machine (info.cc).

#ifndef ENCORE_TOOLS_ENCORE_MODEL_INFO_H_
#define ENCORE_TOOLS_ENCORE_MODEL_INFO_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "encore/precision.h"

namespace encore::tool {

struct ModelInfoOptions {
  std::string folder;
  bool ignore_unknown_keys = false;
  bool json = false;
  std::optional<Precision> precision = {};
  std::vector<MatrixOfLayer> keep = {};
};

// Opens the folder and prints. Throws Failure.
void PrintModelInfo(std::ostream& out, const ModelInfoOptions& options);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_MODEL_INFO_H_
