// SPDX-License-Identifier: Apache-2.0
//
// SafetensorsFile: opens, validates, finds, copies and converts.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "encore/safetensors.h"
#include "engine/base/elements.h"
#include "engine/base/guarded.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/io/folder.h"
#include "engine/io/safetensors_header.h"
#include "engine/platform/fp_env.h"
#include "engine/platform/mapped_file.h"

namespace encore::inline v0_1 {

static_assert(std::endian::native == std::endian::little,
              "the bytes of a file are used as they are");

struct SafetensorsFile::Impl {
  std::string name;
  std::optional<internal::MappedFile> file;  // none for the caller's own bytes
  std::vector<SafetensorsEntry> tensors;
  SafetensorsMetadata metadata;
  std::map<std::string_view, size_t> index;  // name to position in tensors, whose strings it views
};

namespace {

using internal::kLengthBytes;
using internal::Quoted;

// The header's text within the file's bytes.
Result<std::string_view> HeaderText(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) {
    return Status(ErrorCode::kCorruptData,
                  "found " + std::to_string(bytes.size()) +
                      " bytes, wanted at least 8: a safetensors file starts with its header's "
                      "length");
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > internal::kMaxHeaderBytes) {
    return Status(ErrorCode::kCorruptData, "found a header length of " + std::to_string(length) +
                                               ", wanted at most " +
                                               std::to_string(internal::kMaxHeaderBytes));
  }
  if (length > bytes.size() - kLengthBytes) {
    return Status(ErrorCode::kCorruptData,
                  "found a header length of " + std::to_string(length) + ", wanted at most the " +
                      std::to_string(bytes.size() - kLengthBytes) + " bytes that follow it");
  }
  const std::byte* text = bytes.data() + kLengthBytes;
  return std::string_view(reinterpret_cast<const char*>(text), static_cast<size_t>(length));
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path, FileMemory memory) {
  return internal::Guarded("the tensors", [&]() -> Result<SafetensorsFile> {
    Result<internal::MappedFile> file = memory == FileMemory::kCopied
                                            ? internal::MappedFile::OpenCopy(path)
                                            : internal::MappedFile::Open(path);
    if (!file.ok()) return file.status();
    ENCORE_ASSIGN_OR_RETURN(SafetensorsFile opened, FromBytes(file->bytes(), path));
    // Nobody else has seen the new object, so it may still change; the bytes stay where they are.
    std::const_pointer_cast<Impl>(opened.impl_)->file = *std::move(file);
    return opened;
  });
}

Result<SafetensorsFile> SafetensorsFile::FromBytes(std::span<const std::byte> bytes,
                                                   const std::string& name) {
  return internal::Guarded("the tensors", [&]() -> Result<SafetensorsFile> {
    ENCORE_RETURN_IF_ERROR(internal::CheckNoGitLfsPointer(bytes, internal::QuotedPath(name)));
    const Result<std::string_view> text = HeaderText(bytes);
    if (!text.ok()) return internal::Prefixed(name, text.status());
    const std::span<const std::byte> data = bytes.subspan(kLengthBytes + text->size());
    Result<internal::SafetensorsHeader> header =
        internal::ParseSafetensorsHeader(*text, data.size());
    if (!header.ok()) return internal::Prefixed(name, header.status());

    auto impl = std::make_shared<Impl>();
    impl->name = name;
    impl->metadata = std::move(header->metadata);
    impl->tensors.reserve(header->tensors.size());
    for (internal::HeaderTensor& tensor : header->tensors) {
      impl->tensors.push_back({std::move(tensor.name), tensor.dtype, tensor.shape,
                               data.subspan(tensor.begin, tensor.end - tensor.begin)});
    }
    for (size_t i = 0; i < impl->tensors.size(); ++i) impl->index.emplace(impl->tensors[i].name, i);
    return SafetensorsFile(std::move(impl));
  });
}

void SafetensorsFile::ReleasePages() const {
  if (impl_->file) impl_->file->ReleasePages();
}

std::string SafetensorsFile::identity() const { return impl_->file ? impl_->file->Identity() : ""; }

Status SafetensorsFile::CheckUnchanged() const {
  return impl_->file ? impl_->file->CheckUnchanged(impl_->name) : Status();
}

const std::string& SafetensorsFile::name() const& { return impl_->name; }
const std::vector<SafetensorsEntry>& SafetensorsFile::tensors() const& { return impl_->tensors; }
const SafetensorsMetadata& SafetensorsFile::metadata() const& { return impl_->metadata; }

const SafetensorsEntry* SafetensorsFile::Find(std::string_view tensor) const& {
  const auto found = impl_->index.find(tensor);
  return found == impl_->index.end() ? nullptr : &impl_->tensors[found->second];
}

Result<const SafetensorsEntry*> SafetensorsFile::Require(std::string_view tensor) const {
  const SafetensorsEntry* entry = Find(tensor);
  if (entry != nullptr) return entry;
  std::string names;
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < std::min(kShown, tensors().size()); ++i) {
    names += (names.empty() ? "" : ", ") + Quoted(tensors()[i].name);
  }
  if (tensors().size() > kShown) names += " ...";
  return Status(ErrorCode::kNotFound, name() + ": no tensor " + Quoted(tensor) + " among its " +
                                          std::to_string(tensors().size()) +
                                          (names.empty() ? "" : ": " + names));
}

Result<Tensor> SafetensorsFile::Read(std::string_view tensor) const {
  return internal::Guarded("the tensors", [&]() -> Result<Tensor> {
    ENCORE_ASSIGN_OR_RETURN(const SafetensorsEntry* const entry, Require(tensor));
    const std::span<const std::byte> bytes = entry->bytes;
    if (entry->dtype == DType::kBool) {
      // Any other byte in a C++ bool is undefined behaviour.
      const auto bad =
          std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
      if (bad != bytes.end()) {
        return Status(ErrorCode::kCorruptData,
                      name() + ": tensor " + Quoted(tensor) + ": found the byte " +
                          std::to_string(std::to_integer<int>(*bad)) + " at element " +
                          std::to_string(bad - bytes.begin()) + " of a BOOL, wanted 0 or 1");
      }
    }
    ENCORE_ASSIGN_OR_RETURN(Tensor copy, Tensor::Create(entry->dtype, entry->shape));
    if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
    return copy;
  });
}

Result<Tensor> SafetensorsFile::ReadAsF32(std::string_view tensor) const {
  return internal::Guarded("the tensors", [&]() -> Result<Tensor> {
    ENCORE_ASSIGN_OR_RETURN(const SafetensorsEntry* const entry, Require(tensor));
    const DType dtype = entry->dtype;
    if (!internal::IsFloat(dtype)) {
      return InvalidArgument(name() + ": tensor " + Quoted(tensor) + ": found dtype " +
                             std::string(DTypeName(dtype)) + ", wanted " +
                             std::string(internal::kFloatTypes));
    }
    ENCORE_ASSIGN_OR_RETURN(Tensor copy, Tensor::Create(DType::kF32, entry->shape));
    const internal::FpEnvScope modes;  // to nearest, whatever the caller's modes are
    internal::ElementsToFloats(dtype, entry->bytes.data(), 1,
                               entry->bytes.size() / DTypeSize(dtype),
                               static_cast<float*>(copy.data()));
    return copy;
  });
}

Result<TensorView<const float>> SafetensorsFile::ViewF32(std::string_view tensor) const& {
  return internal::Guarded("the tensors", [&]() -> Result<TensorView<const float>> {
    ENCORE_ASSIGN_OR_RETURN(const SafetensorsEntry* const entry, Require(tensor));
    const std::span<const std::byte> bytes = entry->bytes;
    if (entry->dtype != DType::kF32 ||
        reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) != 0) {
      return Status(ErrorCode::kUnsupported,
                    name() + ": tensor " + Quoted(tensor) + ": found " +
                        std::string(DTypeName(entry->dtype)) +
                        " that may be unaligned, wanted aligned F32 to view it in place");
    }
    const float* data = bytes.empty() ? nullptr : reinterpret_cast<const float*>(bytes.data());
    return TensorView<const float>(data, entry->shape);
  });
}

}  // namespace encore
