// SPDX-License-Identifier: Apache-2.0
//
// Writes a file whole or not at all. Not here: reading (mapped_file.h) and formats (engine/io).

#ifndef ENCORE_ENGINE_PLATFORM_FILE_WRITER_H_
#define ENCORE_ENGINE_PLATFORM_FILE_WRITER_H_

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "encore/status.h"

namespace encore::internal {

// Writes into a temporary file beside `path`, which Commit() renames to it. Whatever fails before,
// and a writer that is destroyed without Commit(), removes the temporary and leaves what was at
// `path` untouched. A killed process may leave the temporary (".encore-..."), never half a file at
// `path`. One thread at a time.
class FileWriter {
 public:
  // kIo or kNotFound if the folder does not exist or is not writable, or if `path` is something
  // other than a regular file (a folder, a device). A symbolic link at `path` stays; the file it
  // points to is replaced, with its permissions.
  static Result<FileWriter> Create(const std::string& path);

  FileWriter(FileWriter&&) = default;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter() { Discard(); }

  Status Write(std::span<const std::byte> bytes);
  // Replaces bytes that were written before, from `offset` on; later ones go on at the end. For a
  // header that says how much came after it.
  Status Replace(size_t offset, std::span<const std::byte> bytes);
  // Brings the bytes to the disk, closes and renames. Nothing may be called after it.
  Status Commit();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  FileWriter() = default;
  void Discard();

  std::string path_;                   // as the caller named it, for messages
  std::filesystem::path destination_;  // with symbolic links resolved
  std::filesystem::path temporary_;    // exists exactly while file_ is open
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_FILE_WRITER_H_
