// SPDX-License-Identifier: Apache-2.0
//
// The memory that a file of weights takes in each precision, for `encore info --weights`, counted
// before any matrix is read. Not here: the machine (info.cc), a model's folder (model_info.h).

#ifndef ENCORE_TOOLS_ENCORE_WEIGHTS_INFO_H_
#define ENCORE_TOOLS_ENCORE_WEIGHTS_INFO_H_

#include <cstddef>
#include <ostream>
#include <string>

namespace encore::tool {

struct WeightsInfoRequest {
  std::string path;
  int threads = 1;  // beside 1
  bool json = false;
};

// Throws Failure where the file is none of weights.
void PrintWeightsInfo(std::ostream& out, const WeightsInfoRequest& request);

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_WEIGHTS_INFO_H_
