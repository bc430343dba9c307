// SPDX-License-Identifier: Apache-2.0
//
// A file's bytes in memory, read-only: mapped where the system can, else read.

#ifndef ENCORE_ENGINE_PLATFORM_MAPPED_FILE_H_
#define ENCORE_ENGINE_PLATFORM_MAPPED_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "encore/executor.h"
#include "encore/status.h"
#include "engine/platform/file_handle.h"

namespace encore::inline v0_1::internal {

// Unmaps and closes, or frees, whichever the memory needs.
struct ReleaseFileMemory {
  size_t size = 0;
  bool mapped = false;
  FileHandle::Value file = FileHandle::kNone;  // of a mapped file, to see whether it changes
  FileIdentity identity = {};
  void operator()(const std::byte* memory) const;
};

// Movable, not copyable. The bytes stay as they are when the file is renamed over or removed;
// another process that shortens or rewrites the file itself in place breaks them.
class MappedFile {
 public:
  // kNotFound if there is no such file; kIo if it is no regular file or cannot be read;
  // kInvalidArgument if the path has a zero byte; kOutOfMemory.
  static Result<MappedFile> Open(const std::string& path);
  // The same for a file that encore wrote for itself, in a folder where others may write too: kIo
  // as well if `path` is a symbolic link, or the file belongs to another user than root and that of
  // this process.
  static Result<MappedFile> OpenOwn(const std::string& path);
  // The same with the bytes copied: nobody can change them any more. kCorruptData, before anything
  // is read, for a file of more than max_bytes.
  static Result<MappedFile> OpenCopy(const std::string& path, size_t max_bytes = SIZE_MAX);

  // Starts at least 16-byte aligned; null for an empty file.
  std::span<const std::byte> bytes() const { return {memory_.get(), memory_.get_deleter().size}; }

  size_t mapped_bytes() const {  // 0 where the file was read
    return memory_.get_deleter().mapped ? bytes().size() : 0;
  }

  // kIo if a mapped file has another size or time of modification than when it was opened. To read
  // from one that was shortened would end the process. Others can do that between this call and the
  // reading; what it finds are copies and downloads over a file that is in use. A file of the same
  // size is no error where same_bytes() says that it has the bytes it had: it was touched, not
  // written to. An error of same_bytes is returned. That is asked again in the two seconds after a
  // change (times may be that coarse). `path` is for the sentence.
  Status CheckUnchanged(const std::string& path,
                        const std::function<Result<bool>()>& same_bytes = {}) const;

  // A checksum of all bytes that a mapped file has now, the same with any executor, by which it may
  // be stopped. Makes none of them this process's memory. kIo if they cannot be read; `path` is for
  // the sentence.
  Result<uint64_t> FileChecksum(const std::string& path, const Executor& executor) const;

  // A text that differs from that of any other file, and from that of this one after a change: of
  // device, inode, size and times. Empty where that is not certain: for a file that was changed in
  // the two seconds before it was opened (times may be that coarse), and where the system has no
  // such numbers.
  std::string Identity() const;

  // Gives the pages of a mapped file back: they are none of this process's memory until they are
  // touched again. Any thread may read meanwhile. Does nothing where the file was read.
  void ReleasePages() const;

  // Asks the system to read the file in large pieces and to map it in large pages, for bytes that
  // will all be read. These spare faults and the walks of page tables. Does nothing where the
  // system has no such call, or the file was read.
  void PreferLargePages() const;

 private:
  using Memory = std::unique_ptr<const std::byte, ReleaseFileMemory>;
  explicit MappedFile(Memory memory)
      : memory_(std::move(memory)), touched_(std::make_unique<std::atomic<int64_t>>(0)) {}
  static Result<MappedFile> Map(const std::string& path, bool own);
  static Result<Memory> ReadAll(const std::string& path, size_t max_bytes, bool own);

  Memory memory_;
  // FileIdentity::changed of a file that was touched and has the bytes it had; 0 before.
  std::unique_ptr<std::atomic<int64_t>> touched_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_MAPPED_FILE_H_
