// SPDX-License-Identifier: Apache-2.0
//
// The weights of a folder: model.safetensors, or the shards that model.safetensors.index.json
// names, as one set of tensors.

#ifndef ENCORE_ENGINE_MODELS_WEIGHT_FILES_H_
#define ENCORE_ENGINE_MODELS_WEIGHT_FILES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "encore/safetensors.h"
#include "encore/status.h"
#include "engine/io/folder.h"

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
  // See SafetensorsFile.
  void ReleasePages() const;
  Status CheckUnchanged() const;
  std::string Identity() const;  // empty if that of a file is

 private:
  Status ReadShards(const Folder& folder, const JsonValue& index, FileMemory memory);

  std::string name_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string_view, size_t> file_of_;  // tensor's name, which the files hold
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_WEIGHT_FILES_H_
