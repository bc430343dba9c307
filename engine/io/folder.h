// SPDX-License-Identifier: Apache-2.0
//
// The files of one folder by their names. Not here: what is in them.

#ifndef ENCORE_ENGINE_IO_FOLDER_H_
#define ENCORE_ENGINE_IO_FOLDER_H_

#include <optional>
#include <string>
#include <string_view>

#include "encore/status.h"
#include "engine/io/json_value.h"
#include "engine/platform/mapped_file.h"

namespace encore::inline v0_1::internal {

// A folder that was opened by the caller; files are read when they are asked for. A copy is another
// name of the same folder.
class Folder {
 public:
  // kNotFound if there is no such folder; kInvalidArgument if it is no folder, or the path has a
  // zero byte.
  static Result<Folder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const { return path_ + "/" + std::string(name); }

  // A copy of the file's bytes; nothing if there is no such file. kIo; kOutOfMemory.
  Result<std::optional<MappedFile>> Read(std::string_view name) const;
  // The same, parsed: kCorruptData names the file. Files above kMaxJsonBytes are refused.
  Result<std::optional<JsonValue>> ReadJson(std::string_view name) const;
  static constexpr size_t kMaxJsonBytes = size_t{256} << 20;

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_FOLDER_H_
