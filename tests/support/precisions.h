// SPDX-License-Identifier: Apache-2.0
//
// The precisions that a promise is tried in, and what tests say of them.

#ifndef ENCORE_TESTS_SUPPORT_PRECISIONS_H_
#define ENCORE_TESTS_SUPPORT_PRECISIONS_H_

#include <string>

#include "encore/encoder.h"
#include "encore/precision.h"

namespace encore {

inline constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kBF16, Precision::kInt8,
                                            Precision::kInt4};

// "bf16", "int8, keeping 3 matrices".
inline std::string Describe(const EncoderOptions& options) {
  std::string text(PrecisionName(options.precision));
  if (!options.keep.empty()) {
    text += ", keeping " + std::to_string(options.keep.size()) + " matrices";
  }
  return text;
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_PRECISIONS_H_
