// SPDX-License-Identifier: Apache-2.0
//
// What sentence-transformers' files in a model's folder have in common: keys that nobody knows, and
// names of folders within.

#ifndef ENCORE_ENGINE_TEXT_FOLDER_FILES_H_
#define ENCORE_ENGINE_TEXT_FOLDER_FILES_H_

#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/io/folder.h"
#include "engine/io/json_members.h"

namespace encore::inline v0_1::internal {

// What the readers of these files are given, and where they tell what they took.
struct FolderReading {
  const Folder& folder;
  bool ignore_unknown_keys = false;
  std::vector<Decision>& decisions;

  void Tell(std::string what, std::string value, std::string source) const {
    decisions.push_back({std::move(what), std::move(value), std::move(source)});
  }
};

// The members' own error; else kInvalidArgument for the first key that was not read, or, with
// ignore_unknown_keys, a decision for each.
Status Finish(const JsonMembers& members, const FolderReading& reading);

// As Finish, of files whose unknown keys sentence-transformers leaves alone: each is a decision.
Status FinishAsUnused(const JsonMembers& members, const FolderReading& reading);

// An error unless the member is absent, null, or the empty object or array: settings that encore
// has no use for and that mean nothing where they are empty.
void WantEmpty(JsonMembers& members, std::string_view key);

// `path`/`name`, or `name` where path is empty.
std::string Within(std::string_view path, std::string_view name);

// Whether a module's path stays within the folder: not absolute, no "..", no backslash or colon.
bool IsWithin(std::string_view path);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_FOLDER_FILES_H_
