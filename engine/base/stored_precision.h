// SPDX-License-Identifier: Apache-2.0
//
// The precision that a file of weights was made for, from its metadata.

#ifndef ENCORE_ENGINE_BASE_STORED_PRECISION_H_
#define ENCORE_ENGINE_BASE_STORED_PRECISION_H_

#include <string>
#include <string_view>

#include "encore/precision.h"
#include "encore/safetensors.h"
#include "encore/status.h"
#include "engine/base/quoted.h"

namespace encore::inline v0_1::internal {

// The metadata's key: bf16 or int8.
inline constexpr std::string_view kPrecisionKey = "encore_precision";

// kF32 where there is no such key.
inline Result<Precision> StoredPrecision(const SafetensorsMetadata& metadata) {
  const auto found = metadata.find(std::string(kPrecisionKey));
  if (found == metadata.end()) return Precision::kF32;
  Result<Precision> precision = PrecisionFromName(found->second);
  if (precision.ok() && *precision != Precision::kInt4) return precision;
  return InvalidArgument("metadata " + std::string(kPrecisionKey) + ": found " +
                         Quoted(found->second) + ", wanted f32, bf16 or int8");
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_STORED_PRECISION_H_
