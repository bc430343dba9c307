// SPDX-License-Identifier: Apache-2.0
//
// Settings of a test run from the environment.

#ifndef ENCORE_TESTS_SUPPORT_ENVIRONMENT_H_
#define ENCORE_TESTS_SUPPORT_ENVIRONMENT_H_

#include <cstdint>
#include <cstdlib>

namespace encore {

// The number that the variable `name` has, or `otherwise` where it is not set.
inline uint32_t FromEnvironment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_ENVIRONMENT_H_
