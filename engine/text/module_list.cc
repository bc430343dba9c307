// SPDX-License-Identifier: Apache-2.0
//
// Reads modules.json. Classes are named by the path of their Python module: the old one and the two
// that came after it.

#include "engine/text/module_list.h"

#include <array>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr std::string_view kFile = "modules.json";

struct ClassName {
  std::string_view name;
  std::string_view file;  // the class's own module, in the newer paths
  ModuleKind kind;
};
constexpr std::array<ClassName, 4> kClasses = {{
    {"Transformer", "transformer", ModuleKind::kTransformer},
    {"Pooling", "pooling", ModuleKind::kPooling},
    {"Dense", "dense", ModuleKind::kDense},
    {"Normalize", "normalize", ModuleKind::kNormalize},
}};
constexpr std::array<std::string_view, 3> kPackages = {
    "sentence_transformers.models.",
    "sentence_transformers.base.modules.",
    "sentence_transformers.sentence_transformer.modules.",
};

// "PACKAGE.Class", "PACKAGE.file.Class".
std::optional<ModuleKind> KindOf(std::string_view type) {
  for (const std::string_view package : kPackages) {
    if (!type.starts_with(package)) continue;
    const std::string_view rest = type.substr(package.size());
    for (const ClassName& known : kClasses) {
      if (rest == known.name) return known.kind;
      const std::string nested = std::string(known.file) + "." + std::string(known.name);
      if (rest == nested) return known.kind;
      // sentence_transformers.models.X was a module of that name in old folders.
      if (rest == std::string(known.name) + "." + std::string(known.name)) return known.kind;
    }
  }
  return {};
}

Status CheckOrder(const std::vector<ModuleEntry>& modules) {
  const std::string where(kFile);
  if (modules.empty()) return InvalidArgument(where + ": found no module; wanted a Transformer");
  for (size_t i = 0; i < modules.size(); ++i) {
    const ModuleKind kind = modules[i].kind;
    const bool fits = i == 0   ? kind == ModuleKind::kTransformer
                      : i == 1 ? kind == ModuleKind::kPooling
                               : kind == ModuleKind::kDense || kind == ModuleKind::kNormalize;
    if (fits) continue;
    return Status(ErrorCode::kUnsupported, where + ": module " + std::to_string(i) +
                                               " is out of order; wanted Transformer, "
                                               "Pooling, then Dense and Normalize");
  }
  return {};
}

Result<ModuleEntry> ReadEntry(const JsonValue& value, size_t index, const FolderReading& reading) {
  JsonMembers members(value, std::string(kFile) + ": [" + std::to_string(index) + "]");
  ModuleEntry entry;
  const std::string type = members.RequiredString("type");
  entry.path = members.RequiredString("path");
  members.Ignore("idx");  // the list's order counts
  members.Ignore("name");
  WantEmpty(members, "kwargs");
  if (members.ok() && !IsWithin(entry.path)) {
    members.Refuse("path", "a folder within the model's");
  }
  ENCORE_RETURN_IF_ERROR(Finish(members, reading));
  const std::optional<ModuleKind> kind = KindOf(type);
  if (!kind) {
    return Status(ErrorCode::kUnsupported,
                  members.where() + ": type is " + Quoted(type) +
                      "; encore has Transformer, Pooling, Dense and Normalize of "
                      "sentence_transformers");
  }
  entry.kind = *kind;
  return entry;
}

}  // namespace

Result<std::optional<std::vector<ModuleEntry>>> ReadModuleList(const FolderReading& reading) {
  ENCORE_ASSIGN_OR_RETURN(const std::optional<JsonValue> file, reading.folder.ReadJson(kFile));
  if (!file.has_value()) return std::optional<std::vector<ModuleEntry>>();
  const JsonValue& list = *file;
  if (!list.is_array()) {
    return Status(ErrorCode::kCorruptData,
                  std::string(kFile) + ": found " + list.Described() + "; wanted an array");
  }
  std::vector<ModuleEntry> modules;
  for (const JsonValue& value : list.items()) {
    ENCORE_ASSIGN_OR_RETURN(ModuleEntry entry, ReadEntry(value, modules.size(), reading));
    modules.push_back(std::move(entry));
  }
  ENCORE_RETURN_IF_ERROR(CheckOrder(modules));
  return std::optional(std::move(modules));
}

}  // namespace encore::internal
