// SPDX-License-Identifier: Apache-2.0
//
// The files of one folder.

#include "engine/io/folder.h"

#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "engine/base/out_of_memory.h"
#include "engine/base/quoted.h"
#include "engine/platform/path_check.h"

namespace encore::inline v0_1::internal {

Result<Folder> Folder::Open(const std::string& path) try {
  if (Status status = CheckPath(path); !status.ok()) return status;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return Status(ErrorCode::kNotFound, "there is no folder " + Quoted(path));
  }
  if (!std::filesystem::is_directory(status)) {
    return InvalidArgument(Quoted(path) + " is not a folder; wanted a model's folder");
  }
  return Folder(path);
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<std::optional<MappedFile>> Folder::Read(std::string_view name) const try {
  Result<MappedFile> file = MappedFile::OpenCopy(PathOf(name));
  if (file.ok()) return std::optional<MappedFile>(*std::move(file));
  if (file.status().code() == ErrorCode::kNotFound) return std::optional<MappedFile>();
  return file.status();
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<std::optional<JsonValue>> Folder::ReadJson(std::string_view name) const try {
  const Result<std::optional<MappedFile>> file = Read(name);
  if (!file.ok()) return file.status();
  if (!file->has_value()) return std::optional<JsonValue>();
  const std::span<const std::byte> bytes = (*file)->bytes();
  const std::string quoted = Quoted(PathOf(name));
  if (bytes.size() > kMaxJsonBytes) {
    return Status(ErrorCode::kUnsupported, quoted + " has " + std::to_string(bytes.size()) +
                                               " bytes; wanted at most " +
                                               std::to_string(kMaxJsonBytes));
  }
  Result<JsonValue> value =
      JsonValue::Parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  if (!value.ok()) return Status(value.status().code(), quoted + ": " + value.status().message());
  return std::optional<JsonValue>(*std::move(value));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

}  // namespace encore::internal
