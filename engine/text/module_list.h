// SPDX-License-Identifier: Apache-2.0
//
// modules.json: which modules a folder has, in which order.

#ifndef ENCORE_ENGINE_TEXT_MODULE_LIST_H_
#define ENCORE_ENGINE_TEXT_MODULE_LIST_H_

#include <optional>
#include <string>
#include <vector>

#include "encore/status.h"
#include "engine/text/folder_files.h"

namespace encore::inline v0_1::internal {

enum class ModuleKind : uint8_t { kTransformer, kPooling, kDense, kNormalize };

struct ModuleEntry {
  ModuleKind kind = ModuleKind::kTransformer;
  std::string path;  // within the folder; may be ""
};

// The modules in the file's order: a transformer, then at most one pooling before any number of
// dense layers and normalizations. Nothing where there is no modules.json. kUnsupported names a
// module of another class; kInvalidArgument another order.
Result<std::optional<std::vector<ModuleEntry>>> ReadModuleList(const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_MODULE_LIST_H_
