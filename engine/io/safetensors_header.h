// SPDX-License-Identifier: Apache-2.0
//
// The safetensors header: its limits, its dtype names, and the parser that trusts nothing.

#ifndef ENCORE_ENGINE_IO_SAFETENSORS_HEADER_H_
#define ENCORE_ENGINE_IO_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "encore/safetensors.h"
#include "encore/status.h"
#include "encore/tensor.h"

namespace encore::inline v0_1::internal {

inline constexpr size_t kLengthBytes = 8;             // the header's length comes first
inline constexpr size_t kMaxHeaderBytes = 100000000;  // the limit of the reference reader
// Tensors and members of the metadata. Published files have a hundredth of it.
inline constexpr size_t kMaxHeaderKeys = size_t{1} << 18;
inline constexpr std::string_view kMetadataKey = "__metadata__";

// A tensor of the header; begin and end count bytes from the start of the data.
struct HeaderTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  size_t begin = 0;
  size_t end = 0;
};

struct SafetensorsHeader {
  std::vector<HeaderTensor> tensors;  // in the order of the text
  SafetensorsMetadata metadata;
};

// Parses the header's JSON and validates it: names are unique; ranges fit dtype and shape, do not
// overlap and cover the data.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json, size_t data_bytes);

// DTypeSize * elements; kInvalidArgument if that, or the product of the extents that are not 0,
// cannot be addressed.
Result<size_t> TensorBytes(DType dtype, const Shape& shape);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_SAFETENSORS_HEADER_H_
