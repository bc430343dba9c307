// SPDX-License-Identifier: Apache-2.0
//
// One target for libFuzzer; CMake says which.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const encore::fuzz::Target* const target =
      encore::fuzz::FindTarget(ENCORE_FUZZ_TARGET_NAME);
  target->run(size == 0 ? std::string_view()
                        : std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
