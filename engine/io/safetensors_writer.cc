// SPDX-License-Identifier: Apache-2.0
//
// Writing: checks, lays out, and takes tensors in turn.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "encore/safetensors.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/io/json_value.h"
#include "engine/io/safetensors_header.h"
#include "engine/io/safetensors_stream.h"
#include "engine/platform/file_writer.h"

namespace encore::inline v0_1 {
namespace {

using internal::JsonString;
using internal::Prefixed;
using internal::Quoted;
using internal::StreamedTensor;

std::string What(const std::string& name) { return "tensor " + Quoted(name) + ": "; }

// Names that differ, and shapes that can be addressed: then the sizes in bytes, in `bytes`.
Status CheckTensors(std::span<const StreamedTensor> tensors, std::vector<size_t>* bytes) {
  std::set<std::string_view> names;
  for (const StreamedTensor& tensor : tensors) {
    const std::string what = What(tensor.name);
    if (tensor.name == internal::kMetadataKey)
      return InvalidArgument(what + "the format reserves this name");
    if (!names.insert(tensor.name).second)
      return InvalidArgument(what + "found two of this name, wanted one");
    const Result<size_t> wanted = internal::TensorBytes(tensor.dtype, tensor.shape);
    if (!wanted.ok()) return InvalidArgument(what + wanted.status().message());
    bytes->push_back(*wanted);
  }
  return Status();
}

// Positions of the tensors in the order in which their bytes are written: large elements first,
// else as given. As the data starts at a multiple of 8, each tensor is then aligned to its
// elements.
std::vector<size_t> DataOrder(std::span<const StreamedTensor> tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [tensors](size_t a, size_t b) {
    return DTypeSize(tensors[a].dtype) > DTypeSize(tensors[b].dtype);
  });
  return order;
}

Status AppendMetadata(const SafetensorsMetadata& metadata, std::string* json) {
  std::string separator;
  *json += "\"" + std::string(internal::kMetadataKey) + "\":{";
  for (const auto& [key, value] : metadata) {
    const Result<std::string> key_json = JsonString(key);
    const Result<std::string> value_json = JsonString(value);
    if (!key_json.ok()) return Prefixed("metadata key", key_json.status());
    if (!value_json.ok()) return Prefixed("metadata value", value_json.status());
    *json += std::exchange(separator, ",") + *key_json + ":" + *value_json;
  }
  *json += '}';
  return Status();
}

// The header's JSON, padded with spaces so that the data starts at a multiple of 8.
Result<std::string> HeaderJson(std::span<const StreamedTensor> tensors,
                               std::span<const size_t> bytes, std::span<const size_t> data_order,
                               const SafetensorsMetadata& metadata) {
  std::vector<size_t> begins(tensors.size());
  size_t total = 0;
  for (const size_t i : data_order) {
    begins[i] = total;
    if (!internal::CheckedAdd(total, bytes[i], &total)) {
      return InvalidArgument("the tensors together have more bytes than this machine can address");
    }
  }
  std::string json = "{";
  if (!metadata.empty()) {
    ENCORE_RETURN_IF_ERROR(AppendMetadata(metadata, &json));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Result<std::string> name = JsonString(tensors[i].name);
    if (!name.ok()) return Prefixed("tensor name", name.status());
    std::string shape;
    for (size_t a = 0; a < tensors[i].shape.rank(); ++a) {
      shape += (a == 0 ? "" : ",") + std::to_string(tensors[i].shape[a]);
    }
    if (json.size() > 1) json += ',';
    json += *name + ":{\"dtype\":\"" + std::string(DTypeName(tensors[i].dtype)) + "\",\"shape\":[" +
            shape + "],\"data_offsets\":[" + std::to_string(begins[i]) + "," +
            std::to_string(begins[i] + bytes[i]) + "]}";
  }
  json += '}';
  json.resize(internal::RoundUp(json.size(), 8), ' ');
  if (json.size() > internal::kMaxHeaderBytes) {
    return Status(ErrorCode::kUnsupported,
                  "found names and metadata that make a header of " + std::to_string(json.size()) +
                      " bytes, wanted at most " + std::to_string(internal::kMaxHeaderBytes));
  }
  return json;
}

Status WrongBytes(const StreamedTensor& tensor, ErrorCode code, size_t found, size_t wanted) {
  return Status(code, What(tensor.name) + "found " + std::to_string(found) + " bytes, wanted " +
                          std::to_string(wanted) + " for " + std::string(DTypeName(tensor.dtype)) +
                          " " + tensor.shape.ToString());
}

Status WriteTensor(const StreamedTensor& tensor, size_t bytes, internal::FileWriter* writer) {
  size_t written = 0;
  Status status = tensor.write([&](std::span<const std::byte> piece) {
    written += piece.size();
    return writer->Write(piece);
  });
  if (!status.ok() || written == bytes) return status;
  return WrongBytes(tensor, ErrorCode::kIo, written, bytes);
}

}  // namespace

SafetensorsEntry MakeSafetensorsEntry(std::string name, const Tensor& tensor) {
  return {std::move(name),
          tensor.dtype(),
          tensor.shape(),
          {static_cast<const std::byte*>(tensor.data()), tensor.size_bytes()}};
}

Status WriteSafetensors(const std::string& path, std::span<const SafetensorsEntry> entries,
                        const SafetensorsMetadata& metadata) {
  return internal::Guarded(path, [&]() -> Status {
    std::vector<StreamedTensor> tensors;
    for (const SafetensorsEntry& entry : entries) {
      const auto write = [&entry](const internal::ByteSink& sink) { return sink(entry.bytes); };
      tensors.push_back({entry.name, entry.dtype, entry.shape, write});
    }
    std::vector<size_t> bytes;
    Status status = CheckTensors(tensors, &bytes);
    for (size_t i = 0; status.ok() && i < entries.size(); ++i) {
      if (entries[i].bytes.size() == bytes[i]) continue;
      status =
          WrongBytes(tensors[i], ErrorCode::kInvalidArgument, entries[i].bytes.size(), bytes[i]);
    }
    if (!status.ok()) return Prefixed(path, status);
    return internal::WriteSafetensorsStream(path, tensors, metadata);
  });
}

Status internal::WriteSafetensorsStream(const std::string& path,
                                        std::span<const StreamedTensor> tensors,
                                        const SafetensorsMetadata& metadata) {
  return internal::Guarded(path, [&]() -> Status {
    std::vector<size_t> bytes;
    Status status = CheckTensors(tensors, &bytes);
    if (!status.ok()) return Prefixed(path, status);
    const std::vector<size_t> order = DataOrder(tensors);
    const Result<std::string> json = HeaderJson(tensors, bytes, order, metadata);
    if (!json.ok()) return Prefixed(path, json.status());

    ENCORE_ASSIGN_OR_RETURN(internal::FileWriter writer, internal::FileWriter::Create(path));
    const uint64_t length = json->size();
    status = writer.Write(std::as_bytes(std::span(&length, 1)));
    if (status.ok()) status = writer.Write(std::as_bytes(std::span(*json)));
    for (const size_t i : order) {
      if (status.ok()) status = WriteTensor(tensors[i], bytes[i], &writer);
    }
    if (status.ok()) status = writer.Commit();
    return status;
  });
}

}  // namespace encore
