// SPDX-License-Identifier: Apache-2.0
//
// Writes a file whole or not at all.

#ifndef ENCORE_ENGINE_PLATFORM_FILE_WRITER_H_
#define ENCORE_ENGINE_PLATFORM_FILE_WRITER_H_

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "encore/status.h"
#include "engine/platform/file_handle.h"

namespace encore::inline v0_1::internal {

// Where the bytes are until Commit().
enum class Temporary {
  kNameless,  // on Linux, where the file system can: a file without a name; else as kNamed
  kNamed,     // ".encore-" and a random number
};

// What becomes of a symbolic link at `path`.
enum class LinkAtPath {
  kFollowed,  // it stays: the file that it points to is replaced, with its permissions
  kReplaced,  // itself, and only the new file's owner may write to that
};

// Writes into a temporary file in the folder of `path`, which Commit() puts there. Whatever fails
// before, and a writer that is destroyed without Commit(), removes the temporary and leaves what
// was at `path` untouched. There is never half a file at `path`. A killed process leaves nothing of
// a nameless temporary, but for two moments: that in which Commit() replaces an old file, and that
// in which a process's first writer on a device tries with an empty file whether names can be given
// later. A named one stays, until RemoveAbandoned (temporary_name.h). A sandbox that is entered
// between Create() and Commit() may refuse the name: an error then. One thread at a time.
class FileWriter {
 public:
  // kIo or kNotFound if the folder does not exist or is not writable, or if `path` is something
  // other than a regular file (a folder, a device); kInvalidArgument if it has a zero byte.
  static Result<FileWriter> Create(const std::string& path,
                                   Temporary temporary = Temporary::kNameless,
                                   LinkAtPath link = LinkAtPath::kFollowed);
  // For a file that encore writes for itself (MappedFile::OpenOwn): makes its folder, removes what
  // killed processes have left there, and replaces a link.
  static Result<FileWriter> CreateOwn(const std::string& path);

  FileWriter(FileWriter&&) = default;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter() { Discard(); }

  Status Write(std::span<const std::byte> bytes);
  // Overwrites bytes from `offset` on, which were written before; Write goes on at the end. For a
  // header that has the size of what follows.
  Status Replace(size_t offset, std::span<const std::byte> bytes);
  // Brings the bytes to the disk, closes, and names or renames. Nothing may be called after it.
  Status Commit();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  FileWriter() = default;
  int OpenNameless();                       // 0, or the system's error number
  int OpenNamed();                          // likewise
  int Publish(FileHandle::Value nameless);  // likewise
  void Discard();

  std::string path_;                   // as the caller named it, for messages
  std::filesystem::path destination_;  // with symbolic links resolved
  std::filesystem::path temporary_;    // exists while file_ is open; empty for a nameless one
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_FILE_WRITER_H_
