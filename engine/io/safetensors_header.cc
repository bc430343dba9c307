// SPDX-License-Identifier: Apache-2.0
//
// The safetensors header's reader, and the checks on all tensors together:
//   {"__metadata__": {"key": "value", ...},
//    "tensor": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}

#include "engine/io/safetensors_header.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/io/json_members.h"

namespace encore::inline v0_1::internal {
namespace {

// A tensor's object, its three members, as many extents as there can be, and two offsets.
constexpr size_t kMaxValuesOfTensor = 1 + 3 + Shape::kMaxRank + 2;

Status Corrupt(std::string message) { return Status(ErrorCode::kCorruptData, std::move(message)); }

Result<DType> ReadDType(const std::string& name, const std::string& where) {
  std::string known;
  for (uint8_t i = 0; DTypeSize(DType{i}) != 0; ++i) {
    const DType dtype{i};
    if (DTypeName(dtype) == name) return dtype;
    known += (known.empty() ? "" : ", ") + std::string(DTypeName(dtype));
  }
  return Status(ErrorCode::kUnsupported,
                where + ": found dtype " + Quoted(name) + ", wanted one of " + known);
}

Result<std::vector<size_t>> ReadSizes(const JsonValue& list, const std::string& where) {
  std::vector<size_t> sizes;
  for (const JsonValue& item : list.items()) {
    uint64_t size = 0;
    if (!item.AsUnsigned(&size) || !std::in_range<size_t>(size)) {
      return Corrupt(where + ": found " + item.Described() +
                     ", wanted whole numbers of at least 0 that this machine can address");
    }
    sizes.push_back(static_cast<size_t>(size));
  }
  return sizes;
}

Result<HeaderTensor> ReadTensor(const std::string& name, const JsonValue& json) {
  const std::string where = "tensor " + Quoted(name);
  JsonMembers members(json, where);
  const std::string dtype = members.RequiredString("dtype");
  const JsonValue& shape = members.RequiredArray("shape");
  const JsonValue& offsets = members.RequiredArray("data_offsets");
  if (!members.ok()) return Corrupt(members.status().message());
  if (const std::vector<std::string> keys = members.Unread(); !keys.empty()) {
    return Corrupt(where + ": found the key " + Quoted(keys[0]) +
                   ", wanted dtype, shape and data_offsets");
  }
  HeaderTensor tensor;
  tensor.name = name;
  ENCORE_ASSIGN_OR_RETURN(tensor.dtype, ReadDType(dtype, where));
  ENCORE_ASSIGN_OR_RETURN(const std::vector<size_t> extents, ReadSizes(shape, where + ": shape"));
  if (extents.size() > Shape::kMaxRank) {
    return Status(ErrorCode::kUnsupported, where + ": found a shape of more than " +
                                               std::to_string(Shape::kMaxRank) +
                                               " extents, wanted at most that");
  }
  ENCORE_ASSIGN_OR_RETURN(tensor.shape, Shape::Create(extents.data(), extents.size()));
  ENCORE_ASSIGN_OR_RETURN(const std::vector<size_t> range,
                          ReadSizes(offsets, where + ": data_offsets"));
  if (range.size() != 2) {
    return Corrupt(where + ": found " + std::to_string(range.size()) + " data_offsets, wanted 2");
  }
  tensor.begin = range[0];
  tensor.end = range[1];
  return tensor;
}

Status ReadMetadata(const JsonValue& json, SafetensorsMetadata* metadata) {
  if (!json.is_object()) {
    return Corrupt("metadata: found " + json.Described() + ", wanted an object");
  }
  for (const auto& [key, value] : json.members()) {
    if (!value.is_string()) {
      return Corrupt("metadata key " + Quoted(key) + ": found " + value.Described() +
                     ", wanted a string");
    }
    metadata->emplace(key, value.text());
  }
  return {};
}

Result<SafetensorsHeader> ReadHeader(std::string_view text) {
  ENCORE_ASSIGN_OR_RETURN(const JsonValue json,
                          JsonValue::Parse(text, kMaxHeaderKeys * kMaxValuesOfTensor));
  if (json.members().size() + json[kMetadataKey].members().size() > kMaxHeaderKeys) {
    return Corrupt("found more than " + std::to_string(kMaxHeaderKeys) +
                   " tensors and metadata keys, wanted at most that");
  }
  SafetensorsHeader header;
  for (const auto& [name, value] : json.members()) {
    if (name == kMetadataKey) {
      ENCORE_RETURN_IF_ERROR(ReadMetadata(value, &header.metadata));
      continue;
    }
    ENCORE_ASSIGN_OR_RETURN(HeaderTensor tensor, ReadTensor(name, value));
    header.tensors.push_back(std::move(tensor));
  }
  return header;
}

std::string RangeText(const HeaderTensor& tensor) {
  return "data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]";
}

Status CheckTensor(const HeaderTensor& tensor, size_t data_bytes) {
  const std::string name = "tensor " + Quoted(tensor.name) + ": ";
  if (tensor.begin > tensor.end)
    return Corrupt(name + "found " + RangeText(tensor) + ", wanted begin <= end");
  if (tensor.end > data_bytes) {
    return Corrupt(name + "found " + RangeText(tensor) + ", wanted an end within the " +
                   std::to_string(data_bytes) + " bytes of data");
  }
  const Result<size_t> wanted = TensorBytes(tensor.dtype, tensor.shape);
  if (!wanted.ok()) return Corrupt(name + wanted.status().message());
  const std::string kind = std::string(DTypeName(tensor.dtype)) + " " + tensor.shape.ToString();
  if (tensor.end - tensor.begin != *wanted) {
    return Corrupt(name + "found " + RangeText(tensor) + " of " +
                   std::to_string(tensor.end - tensor.begin) + " bytes, wanted " +
                   std::to_string(*wanted) + " for " + kind);
  }
  return Status();
}

// Laid end to end in the order of their offsets, the tensors must cover the data exactly.
Status CheckCoverage(const std::vector<HeaderTensor>& tensors, size_t data_bytes) {
  std::vector<const HeaderTensor*> order;
  order.reserve(tensors.size());
  for (const HeaderTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const HeaderTensor* a, const HeaderTensor* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  size_t covered = 0;
  for (const HeaderTensor* tensor : order) {
    if (tensor->begin != covered) {
      return Corrupt(
          "tensor " + Quoted(tensor->name) + ": found " + RangeText(*tensor) + ", which " +
          (tensor->begin < covered ? "overlaps another tensor" : "leaves a gap before it") +
          "; wanted a begin at " + std::to_string(covered));
    }
    covered = tensor->end;
  }
  if (covered != data_bytes) {
    return Corrupt("found " + std::to_string(data_bytes) + " bytes of data, wanted the " +
                   std::to_string(covered) + " that the tensors cover");
  }
  return Status();
}

}  // namespace

Result<size_t> TensorBytes(DType dtype, const Shape& shape) {
  // An extent of 0 must not hide that the others overflow: strides are products of them.
  size_t bytes = DTypeSize(dtype);
  bool empty = false;
  bool fits = true;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) {
      empty = true;
    } else {
      fits = fits && CheckedMul(bytes, shape[i], &bytes);
    }
  }
  if (!fits || bytes > static_cast<size_t>(std::numeric_limits<ptrdiff_t>::max())) {
    return InvalidArgument(std::string(DTypeName(dtype)) + " " + shape.ToString() +
                           " has more bytes than this machine can address");
  }
  return empty ? 0 : bytes;
}

Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json, size_t data_bytes) {
  if (json.empty() || json.front() != '{') {
    return Corrupt("header: found " + (json.empty() ? "nothing" : Quoted(json.substr(0, 1))) +
                   " at its start, wanted '{'");
  }
  Result<SafetensorsHeader> header = ReadHeader(json);
  if (!header.ok()) return Prefixed("header", header.status());
  for (const HeaderTensor& tensor : header->tensors) {
    ENCORE_RETURN_IF_ERROR(CheckTensor(tensor, data_bytes));
  }
  ENCORE_RETURN_IF_ERROR(CheckCoverage(header->tensors, data_bytes));
  return header;
}

}  // namespace encore::internal
