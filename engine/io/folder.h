// SPDX-License-Identifier: Apache-2.0
//
// The files of one folder by their names, and how large each may be.

#ifndef ENCORE_ENGINE_IO_FOLDER_H_
#define ENCORE_ENGINE_IO_FOLDER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "encore/status.h"
#include "engine/io/json_value.h"
#include "engine/platform/mapped_file.h"

namespace encore::inline v0_1::internal {

// A folder whose files are read when asked for.
class Folder {
 public:
  // kNotFound if there is no such folder; kInvalidArgument if it is no folder, or the path has a
  // zero byte; kIo if the system does not let us look into it.
  static Result<Folder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Whether the file is there. kIo for a link that leads nowhere, which would change how the folder
  // is read, and where the system denies access.
  Result<bool> Has(std::string_view name) const;
  // A copy of the file's bytes; nothing if there is no such file, kIo as Has(). kCorruptData for a
  // pointer of git-lfs and, before anything is read, for a file that is larger than files of this
  // name may be. kOutOfMemory.
  Result<std::optional<MappedFile>> Read(std::string_view name) const;
  // The bytes of such a file, parsed: kCorruptData names the file.
  Result<JsonValue> ParseJson(std::string_view name, const MappedFile& file) const;
  // Both.
  Result<std::optional<JsonValue>> ReadJson(std::string_view name) const;

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  // For a file that was not found: an error if a link on its path leads nowhere.
  Status CheckAbsent(std::string_view name) const;

  std::string path_;
};

inline std::string_view TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// kCorruptData for a git-lfs pointer; `quoted` names the file.
Status CheckNoGitLfsPointer(std::span<const std::byte> bytes, const std::string& quoted);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_FOLDER_H_
