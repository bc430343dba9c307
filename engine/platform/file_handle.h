// SPDX-License-Identifier: Apache-2.0
//
// Open files and folders as the system has them, and what it does with them. Each system's calls
// are in a file of its own: file_handle_posix.cc, file_handle_windows.cc, file_handle_wasm.cc.

#ifndef ENCORE_ENGINE_PLATFORM_FILE_HANDLE_H_
#define ENCORE_ENGINE_PLATFORM_FILE_HANDLE_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

#include "encore/status.h"

namespace encore::inline v0_1::internal {

// Closed when it goes out of scope.
class FileHandle {
 public:
  using Value = intptr_t;  // a descriptor, or a HANDLE of Windows
  static constexpr Value kNone = -1;

  FileHandle() = default;
  explicit FileHandle(Value value) : value_(value) {}
  FileHandle(FileHandle&& other) noexcept : value_(other.Release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  ~FileHandle() { Reset(kNone); }
  Value get() const { return value_; }
  Value Release() { return std::exchange(value_, kNone); }
  void Reset(Value value);

 private:
  Value value_ = kNone;
};

// Which file it is and when its bytes and its inode last changed, in nanoseconds: as the system had
// it when the file was opened.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t modified = 0;
  int64_t changed = 0;
  bool settled = false;  // no change in the two seconds before: the next one has another time
};

struct FileState {
  bool is_regular = false;
  bool is_folder = false;
  uint64_t size = 0;
  FileIdentity identity;
};

// Opens what is there to read it, and waits for nobody, such as a pipe's writer. Others may rename
// over it or remove it meanwhile. own: fails for a symbolic link, and for what belongs to another
// user than this process's and those that may do anything anyway. kNotFound, kIo.
Result<FileHandle> OpenToRead(const std::string& path, bool own);

// The following return 0 or an error number of the C library.
int Examine(FileHandle::Value file, FileState* state);
// Reads up to `size` bytes from `offset` on; *got is 0 at the end.
int ReadAt(FileHandle::Value file, uint64_t offset, std::byte* memory, size_t size, size_t* got);
// The file's bytes in memory, of which others' changes may or may not be seen.
int MapFile(FileHandle::Value file, size_t size, const std::byte** memory);
void UnmapFile(const std::byte* memory, size_t size);
// See MappedFile.
void ReleaseMappedPages(const std::byte* memory, size_t size);
void PreferLargeMappedPages(const std::byte* memory, size_t size);

// As std::fopen.
std::FILE* OpenStream(const std::filesystem::path& path, const char* mode);
// The stream's own.
FileHandle::Value HandleOf(std::FILE* stream);
// Brings what was written to the disk: a stream's bytes, a file's, or a folder's names. Some file
// systems have nothing to do.
int SyncStream(std::FILE* stream);
int SyncPath(const std::filesystem::path& path);
// Gives a file another name, in place of the file that has it, which others may have open.
int RenameOver(const std::filesystem::path& from, const std::filesystem::path& to);
// Of a stream that is open for writing and the name that it has.
int SetPermissions(std::FILE* stream, const std::filesystem::path& name,
                   std::filesystem::perms permissions);
// A file system without permissions may refuse, which does not matter: then folders have none too.
void LetOnlyOwnerWrite(std::FILE* stream);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_FILE_HANDLE_H_
