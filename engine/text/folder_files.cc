// SPDX-License-Identifier: Apache-2.0
//
// Keys that nobody knows, and names of folders.

#include "engine/text/folder_files.h"

#include "engine/base/quoted.h"

namespace encore::inline v0_1::internal {

Status Finish(const JsonMembers& members, const FolderReading& reading) {
  if (!members.ok()) return members.status();
  for (const std::string& key : members.Unread()) {
    if (!reading.ignore_unknown_keys) {
      return InvalidArgument(members.where() + ": unknown key " + Quoted(key) +
                             "; it may change the result (ignore_unknown_keys lets it pass)");
    }
    reading.Tell("ignored", "unknown key " + Quoted(key), members.where());
  }
  return {};
}

Status FinishAsUnused(const JsonMembers& members, const FolderReading& reading) {
  if (!members.ok()) return members.status();
  for (const std::string& key : members.Unread()) {
    reading.Tell("ignored", "unknown key " + Quoted(key), members.where());
  }
  return {};
}

void WantEmpty(JsonMembers& members, std::string_view key) {
  if (!members.Has(key)) return;
  const JsonValue& value = *members.Find(key);
  const bool empty =
      (value.is_object() && value.members().empty()) || (value.is_array() && value.items().empty());
  if (!empty) members.Refuse(key, "nothing in it");
}

std::string Within(std::string_view path, std::string_view name) {
  if (path.empty()) return std::string(name);
  return std::string(path) + "/" + std::string(name);
}

bool IsWithin(std::string_view path) {
  if (path.find_first_of("\\:") != std::string_view::npos) return false;
  if (path.find('\0') != std::string_view::npos) return false;
  if (!path.empty() && path.front() == '/') return false;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return false;
    at = end + 1;
  }
  return true;
}

}  // namespace encore::internal
