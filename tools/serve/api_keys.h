// SPDX-License-Identifier: Apache-2.0
//
// The keys of --api-key-file, one a line.

#ifndef ENCORE_TOOLS_SERVE_API_KEYS_H_
#define ENCORE_TOOLS_SERVE_API_KEYS_H_

#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"

namespace encore::serve {

class ApiKeys {
 public:
  // An empty path: no keys, and everybody is allowed. kInvalidArgument for a file without a key.
  static Result<ApiKeys> Read(const std::string& path);

  // A request with this header "Authorization": "Bearer " and a key. What it takes does not depend
  // on how much of a key is right, nor on which one.
  bool Allow(std::string_view authorization) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace encore::serve

#endif  // ENCORE_TOOLS_SERVE_API_KEYS_H_
