// SPDX-License-Identifier: Apache-2.0
//
// The weights of a folder: model.safetensors, or the shards that model.safetensors.index.json
// names, as one set of tensors.

#ifndef ENCORE_ENGINE_MODELS_WEIGHT_FILES_H_
#define ENCORE_ENGINE_MODELS_WEIGHT_FILES_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/executor.h"
#include "encore/safetensors.h"
#include "encore/status.h"
#include "engine/io/folder.h"
#include "engine/platform/mapped_file.h"

namespace encore::inline v0_1::internal {

// Immutable; copies share the files' memory, which live as long as the last copy.
class WeightFiles {
 public:
  struct Found {
    const SafetensorsFile* file = nullptr;  // null: there is no such tensor
    const SafetensorsEntry* tensor = nullptr;
  };

  // kNotFound without weights; kUnsupported where there are weights of another format only;
  // kCorruptData for an index and shards that do not fit each other; the errors of
  // SafetensorsFile::Open.
  static Result<WeightFiles> Open(const Folder& folder, FileMemory memory = FileMemory::kMapped);

  // "model.safetensors" or the name of the index.
  const std::string& name() const { return name_; }
  const std::vector<SafetensorsFile>& files() const { return files_; }
  Found Find(std::string_view tensor) const;
  size_t mapped_bytes() const;
  // See MappedFile.
  void ReleasePages() const;
  std::string Identity() const;  // empty if that of a file is
  // kIo if a file was changed since it was opened. After NoteBytes a file that was touched, and has
  // the bytes it had, is none.
  Status CheckUnchanged(const Executor& executor = {}) const;
  // Reads all files for their checksums. kIo as CheckUnchanged.
  Status NoteBytes(const Executor& executor) const;

 private:
  // A file's memory, which its SafetensorsFile views.
  struct FileBytes {
    explicit FileBytes(MappedFile opened) : file(std::move(opened)) {}
    MappedFile file;
    std::atomic<uint64_t> checksum = 0;
    std::atomic<bool> noted = false;  // after the checksum
  };

  Status Add(const std::string& path, FileMemory memory);
  Status ReadShards(const Folder& folder, const JsonValue& index, FileMemory memory);

  std::string name_;
  std::vector<std::shared_ptr<FileBytes>> bytes_;
  std::vector<SafetensorsFile> files_;          // of bytes_, in the same order
  std::map<std::string_view, size_t> file_of_;  // tensor's name, which the files hold
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_WEIGHT_FILES_H_
