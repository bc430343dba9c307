// SPDX-License-Identifier: Apache-2.0
//
// The names of precisions.

#include "encore/precision.h"

#include <string>
#include <string_view>

#include "engine/base/guarded.h"

namespace encore::inline v0_1 {

std::string_view PrecisionName(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return "f32";
    case Precision::kBF16:
      return "bf16";
    case Precision::kInt8:
      return "int8";
    case Precision::kInt4:
      return "int4";
  }
  return "unknown";
}

Result<Precision> PrecisionFromName(std::string_view name) {
  return internal::Guarded("the error", [&]() -> Result<Precision> {
    for (const Precision p :
         {Precision::kF32, Precision::kBF16, Precision::kInt8, Precision::kInt4}) {
      if (name == PrecisionName(p)) return p;
    }
    return InvalidArgument("precision is \"" + std::string(name) +
                           "\"; wanted f32, bf16, int8 or int4");
  });
}

}  // namespace encore
