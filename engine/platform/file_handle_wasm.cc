// SPDX-License-Identifier: Apache-2.0
//
// Files in WebAssembly, by the descriptors of WASI. It maps no files, has no users, permissions or
// locks, and one process: who asks for them gets what a file system without them gives.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "engine/platform/file_error.h"
#include "engine/platform/file_handle.h"
#include "engine/platform/temporary_name.h"

namespace encore::inline v0_1::internal {
namespace {

int Descriptor(FileHandle::Value file) { return static_cast<int>(file); }

int64_t Nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

}  // namespace

void FileHandle::Reset(Value value) {
  if (value_ >= 0) (void)::close(Descriptor(value_));
  value_ = value;
}

Result<FileHandle> OpenToRead(const std::string& path, bool own) {
  FileHandle file(::open(path.c_str(), O_RDONLY | (own ? O_NOFOLLOW : 0)));
  if (file.get() < 0) return SystemError(path, "cannot be opened", errno);
  return file;
}

// A file is never settled: who mapped it would be warned of later changes, and here it is copied.
int Examine(FileHandle::Value file, FileState* state) {
  struct stat info = {};
  if (::fstat(Descriptor(file), &info) != 0) return errno;
  *state = {.is_regular = S_ISREG(info.st_mode),
            .is_folder = S_ISDIR(info.st_mode),
            .size = info.st_size > 0 ? static_cast<uint64_t>(info.st_size) : 0,
            .identity = {.device = info.st_dev,
                         .inode = info.st_ino,
                         .modified = Nanoseconds(info.st_mtim),
                         .changed = Nanoseconds(info.st_ctim),
                         .settled = false}};
  return 0;
}

int ReadAt(FileHandle::Value file, uint64_t offset, std::byte* memory, size_t size, size_t* got) {
  const ssize_t read = ::pread(Descriptor(file), memory, size, static_cast<off_t>(offset));
  if (read < 0) return errno;
  *got = static_cast<size_t>(read);
  return 0;
}

int MapFile(FileHandle::Value /*file*/, size_t /*size*/, const std::byte** /*memory*/) {
  return ENOTSUP;
}
void UnmapFile(const std::byte* /*memory*/, size_t /*size*/) {}
void ReleaseMappedPages(const std::byte* /*memory*/, size_t /*size*/) {}
void PreferLargeMappedPages(const std::byte* /*memory*/, size_t /*size*/) {}

std::FILE* OpenStream(const std::filesystem::path& path, const char* mode) {
  return std::fopen(path.c_str(), mode);
}

FileHandle::Value HandleOf(std::FILE* stream) { return ::fileno(stream); }

int SyncStream(std::FILE* stream) { return ::fsync(::fileno(stream)) == 0 ? 0 : errno; }

// Names need nothing.
int SyncPath(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return 0;
  const FileHandle file(::open(path.c_str(), O_RDONLY));
  if (file.get() < 0) return errno;
  return ::fsync(Descriptor(file.get())) == 0 ? 0 : errno;
}

int RenameOver(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  return error.value();
}

int SetPermissions(std::FILE* /*stream*/, const std::filesystem::path& /*name*/,
                   std::filesystem::perms /*permissions*/) {
  return 0;
}
void LetOnlyOwnerWrite(std::FILE* /*stream*/) {}

bool HoldTemporary(FileHandle::Value /*file*/) { return true; }
bool HoldTemporaryFolder(const std::filesystem::path& /*folder*/, FileHandle* /*held*/) {
  return true;
}
FileHandle KeepHold(std::FILE* /*stream*/) { return {}; }
int RenameHeldFolder(const std::filesystem::path& from, const std::filesystem::path& to,
                     FileHandle* /*held*/) {
  return RenameOver(from, to);
}

// Without locks nobody knows what is abandoned.
void RemoveIfAbandoned(const std::filesystem::path& /*path*/) {}

}  // namespace encore::internal
