// SPDX-License-Identifier: Apache-2.0
//
// The zip of torch.save (APPNOTE.TXT of PKWARE, 4.3): entries are found by the directory at its
// end. Of zip64, which torch writes beside it, nothing is needed below 4 GiB.

#include "engine/io/torch_file.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "engine/base/elements.h"
#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/io/torch_pickle.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

using ZipBytes = std::span<const std::byte>;

constexpr size_t kEndBytes = 22;
constexpr size_t kDirectoryEntryBytes = 46;
constexpr size_t kLocalHeaderBytes = 30;

// The little-endian number of `count` bytes there, which are inside.
size_t NumberAt(ZipBytes bytes, size_t at, size_t count) {
  size_t number = 0;
  for (size_t i = count; i-- > 0;) {
    number = number << 8 | std::to_integer<size_t>(bytes[at + i]);
  }
  return number;
}

bool StartsWith(ZipBytes bytes, size_t at, std::string_view text) {
  return at <= bytes.size() && bytes.size() - at >= text.size() &&
         std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

std::string_view TextAt(ZipBytes bytes, size_t at, size_t count) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, count};
}

Status BrokenZip(const std::string& found) {
  return Status(ErrorCode::kCorruptData, found + "; wanted a zip as torch.save writes it");
}

// The bytes of each entry by its name without the folder that all are in.
Result<std::map<std::string_view, ZipBytes>> ReadZip(ZipBytes file) {
  if (!StartsWith(file, 0, "PK\x03\x04") || file.size() < kEndBytes) {
    return Status(ErrorCode::kUnsupported,
                  "found no zip; wanted one, as torch.save has written it since PyTorch 1.6");
  }
  const size_t end = file.size() - kEndBytes;
  if (!StartsWith(file, end, "PK\x05\x06")) return BrokenZip("found no directory at the end");
  const size_t count = NumberAt(file, end + 10, 2);
  const size_t size = NumberAt(file, end + 12, 4);
  size_t at = NumberAt(file, end + 16, 4);
  if (at > end || size > end - at) return BrokenZip("found a directory beyond the end");
  const size_t stop = at + size;
  std::map<std::string_view, ZipBytes> entries;
  for (size_t i = 0; i < count; ++i) {
    if (!StartsWith(file, at, "PK\x01\x02") || stop - at < kDirectoryEntryBytes) {
      return BrokenZip("found a broken directory");
    }
    const size_t method = NumberAt(file, at + 10, 2);
    const size_t packed = NumberAt(file, at + 20, 4);
    const size_t bytes = NumberAt(file, at + 24, 4);
    const size_t name_bytes = NumberAt(file, at + 28, 2);
    const size_t tail = name_bytes + NumberAt(file, at + 30, 2) + NumberAt(file, at + 32, 2);
    const size_t header = NumberAt(file, at + 42, 4);
    if (tail > stop - at - kDirectoryEntryBytes) return BrokenZip("found a broken directory");
    const std::string_view name = TextAt(file, at + kDirectoryEntryBytes, name_bytes);
    at += kDirectoryEntryBytes + tail;
    if (method != 0 || packed != bytes) {
      return Status(ErrorCode::kUnsupported,
                    "entry " + Quoted(name) + ": found a compressed one; wanted it stored");
    }
    if (!StartsWith(file, header, "PK\x03\x04") || file.size() - header < kLocalHeaderBytes) {
      return BrokenZip("entry " + Quoted(name) + ": found no header");
    }
    const size_t begin = header + kLocalHeaderBytes + NumberAt(file, header + 26, 2) +
                         NumberAt(file, header + 28, 2);
    if (begin > file.size() || bytes > file.size() - begin) {
      return BrokenZip("entry " + Quoted(name) + ": found bytes beyond the end");
    }
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos) continue;
    if (!entries.emplace(name.substr(slash + 1), file.subspan(begin, bytes)).second) {
      return BrokenZip("entry " + Quoted(name) + ": found it twice");
    }
  }
  return entries;
}

}  // namespace

Result<std::vector<std::pair<std::string, Tensor>>> ReadTorchFile(std::span<const std::byte> file) {
  ENCORE_ASSIGN_OR_RETURN(const auto entries, ReadZip(file));
  const auto pickle = entries.find("data.pkl");
  if (pickle == entries.end()) {
    return Status(ErrorCode::kUnsupported,
                  "found no entry data.pkl; wanted that of torch.save (not of torch.jit.save)");
  }
  const auto order = entries.find("byteorder");
  if (order != entries.end() && TextAt(order->second, 0, order->second.size()) != "little") {
    return Status(ErrorCode::kUnsupported, "byteorder: found another; wanted 'little'");
  }
  Result<std::vector<PickledTensor>> tensors =
      ReadPickledTensors(TextAt(pickle->second, 0, pickle->second.size()));
  if (!tensors.ok()) {
    return Prefixed("data.pkl", tensors.status());
  }
  const FpEnvScope default_modes;
  std::vector<std::pair<std::string, Tensor>> read;
  for (const PickledTensor& tensor : *tensors) {
    const std::string where = "tensor " + Quoted(tensor.name) + ": ";
    const auto bytes = entries.find("data/" + tensor.storage);
    size_t wanted = 0;
    const bool fits = bytes != entries.end() &&
                      CheckedMul(tensor.storage_elements, DTypeSize(tensor.dtype), &wanted) &&
                      bytes->second.size() == wanted;
    if (!fits) {
      return Status(ErrorCode::kCorruptData,
                    where + "found " +
                        (bytes == entries.end() ? "no entry " + Quoted("data/" + tensor.storage)
                                                : std::to_string(bytes->second.size()) + " bytes") +
                        "; wanted " + std::to_string(tensor.storage_elements) + " elements in " +
                        std::string(DTypeName(tensor.dtype)));
    }
    ENCORE_ASSIGN_OR_RETURN(const Shape shape,
                            Shape::Create(tensor.shape.data(), tensor.shape.size()));
    ENCORE_ASSIGN_OR_RETURN(Tensor values, Tensor::Create(DType::kF32, shape));
    ElementsToFloats(tensor.dtype, bytes->second.data() + tensor.offset * DTypeSize(tensor.dtype),
                     1, values.size_bytes() / sizeof(float), static_cast<float*>(values.data()));
    read.emplace_back(tensor.name, std::move(values));
  }
  return read;
}

}  // namespace encore::internal
