// SPDX-License-Identifier: Apache-2.0
//
// A folder that appears whole or not at all: made beside its place under another name, and renamed
// when everything in it is on the disk.

#ifndef ENCORE_TOOLS_ENCORE_NEW_FOLDER_H_
#define ENCORE_TOOLS_ENCORE_NEW_FOLDER_H_

#include <filesystem>
#include <string>

#include "engine/platform/file_handle.h"

namespace encore::tool {

// A folder ".encore-<random number>.tmp" beside `path`, until Commit() gives it that name. The
// destructor removes one that was not committed. While it lives, the first SIGINT, SIGTERM or
// SIGHUP does not end the process: Interrupted() says so, the destructor cleans up, and then the
// process ends by that signal. A second SIGINT or SIGTERM ends it at once. After SIGKILL the
// temporary folder stays until the next command that writes there; nothing is ever at `path`. One
// at a time, from one thread.
class NewFolder {
 public:
  // Throws Failure if it cannot be made.
  explicit NewFolder(const std::string& path);
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder();

  // Where to write meanwhile.
  const std::filesystem::path& temporary() const { return temporary_; }
  // Whether a signal wants the process to end.
  static bool Interrupted();
  // Brings all files to the disk and renames. Throws Failure: something is at the path by now, a
  // signal came, or the system's error.
  void Commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  internal::FileHandle held_;
  bool committed_ = false;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_NEW_FOLDER_H_
