// SPDX-License-Identifier: Apache-2.0
//
// Files by their descriptors, and locks that end with their process.

#include "engine/platform/file_handle.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "engine/platform/file_error.h"
#include "engine/platform/temporary_name.h"

namespace encore::inline v0_1::internal {
namespace {

int Descriptor(FileHandle::Value file) { return static_cast<int>(file); }

int64_t Nanoseconds(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

FileIdentity IdentityOf(const struct stat& info) {
#if defined(__APPLE__)
  const timespec& modified = info.st_mtimespec;
  const timespec& changed = info.st_ctimespec;
#else
  const timespec& modified = info.st_mtim;
  const timespec& changed = info.st_ctim;
#endif
  constexpr int64_t kSettled = 2000000000;
  timespec now = {};
  const bool has_clock = ::clock_gettime(CLOCK_REALTIME, &now) == 0;
  return {.device = static_cast<uint64_t>(info.st_dev),
          .inode = static_cast<uint64_t>(info.st_ino),
          .modified = Nanoseconds(modified),
          .changed = Nanoseconds(changed),
          .settled = has_clock && Nanoseconds(changed) < Nanoseconds(now) - kSettled};
}

}  // namespace

void FileHandle::Reset(Value value) {
  if (value_ >= 0) (void)::close(Descriptor(value_));
  value_ = value;
}

Result<FileHandle> OpenToRead(const std::string& path, bool own) {
  // O_NONBLOCK: a pipe without a writer must not hang us before we can say that it is no regular
  // file.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (own ? O_NOFOLLOW : 0);
  FileHandle file(::open(path.c_str(), flags));
  if (file.get() < 0) return SystemError(path, "cannot be opened", errno);
  if (!own) return file;
  struct stat info = {};
  if (::fstat(Descriptor(file.get()), &info) != 0) {
    return SystemError(path, "cannot be examined", errno);
  }
  if (S_ISREG(info.st_mode) && info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return Status(ErrorCode::kIo, path + ": found a file of user " + std::to_string(info.st_uid) +
                                      ", wanted one of user " + std::to_string(::geteuid()) +
                                      ", whose this process is, or of root");
  }
  return file;
}

int Examine(FileHandle::Value file, FileState* state) {
  struct stat info = {};
  if (::fstat(Descriptor(file), &info) != 0) return errno;
  *state = {.is_regular = S_ISREG(info.st_mode),
            .is_folder = S_ISDIR(info.st_mode),
            .size = info.st_size > 0 ? static_cast<uint64_t>(info.st_size) : 0,
            .identity = IdentityOf(info)};
  return 0;
}

int ReadAt(FileHandle::Value file, uint64_t offset, std::byte* memory, size_t size, size_t* got) {
  ssize_t read = -1;
  do {
    read = ::pread(Descriptor(file), memory, size, static_cast<off_t>(offset));
  } while (read < 0 && errno == EINTR);
  if (read < 0) return errno;
  *got = static_cast<size_t>(read);
  return 0;
}

int MapFile(FileHandle::Value file, size_t size, const std::byte** memory) {
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, Descriptor(file), 0);
  if (mapped == MAP_FAILED) return errno;
  *memory = static_cast<const std::byte*>(mapped);
  return 0;
}

void UnmapFile(const std::byte* memory, size_t size) {
  (void)::munmap(const_cast<std::byte*>(memory), size);
}

void ReleaseMappedPages(const std::byte* memory, size_t size) {
  (void)::madvise(const_cast<std::byte*>(memory), size, MADV_DONTNEED);
}

void PreferLargeMappedPages([[maybe_unused]] const std::byte* memory,
                            [[maybe_unused]] size_t size) {
#if defined(MADV_HUGEPAGE)
  (void)::madvise(const_cast<std::byte*>(memory), size, MADV_HUGEPAGE);
#endif
}

std::FILE* OpenStream(const std::filesystem::path& path, const char* mode) {
  return std::fopen(path.c_str(), mode);
}

FileHandle::Value HandleOf(std::FILE* stream) { return ::fileno(stream); }

// EINVAL means a file system without fsync.
int SyncStream(std::FILE* stream) {
  return ::fsync(::fileno(stream)) == 0 || errno == EINVAL ? 0 : errno;
}

int SyncPath(const std::filesystem::path& path) {
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return errno;
  return ::fsync(Descriptor(file.get())) == 0 || errno == EINVAL ? 0 : errno;
}

int RenameOver(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  return error.value();
}

int SetPermissions(std::FILE* stream, const std::filesystem::path& /*name*/,
                   std::filesystem::perms permissions) {
  const auto mode = static_cast<mode_t>(permissions & std::filesystem::perms::mask);
  return ::fchmod(::fileno(stream), mode) == 0 ? 0 : errno;
}

void LetOnlyOwnerWrite(std::FILE* stream) {
  struct stat status = {};
  if (::fstat(::fileno(stream), &status) != 0) return;
  (void)::fchmod(::fileno(stream),
                 status.st_mode & static_cast<mode_t>(S_IRWXU | S_IRGRP | S_IROTH));
}

bool HoldTemporary(FileHandle::Value file) {
  const int descriptor = static_cast<int>(file);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat status = {};
  return ::fstat(descriptor, &status) != 0 || status.st_nlink > 0;
}

bool HoldTemporaryFolder(const std::filesystem::path& folder, FileHandle* held) {
  held->Reset(::open(folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (held->get() < 0 || HoldTemporary(held->get())) return true;
  held->Reset(FileHandle::kNone);
  return false;
}

FileHandle KeepHold(std::FILE* stream) {
  return FileHandle(::fcntl(::fileno(stream), F_DUPFD_CLOEXEC, 0));
}

int RenameHeldFolder(const std::filesystem::path& from, const std::filesystem::path& to,
                     FileHandle* /*held*/) {
  return RenameOver(from, to);
}

void RemoveIfAbandoned(const std::filesystem::path& path) {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  // Some network file systems lock only what may be written.
  int descriptor = ::open(path.c_str(), O_RDWR | kFlags);
  if (descriptor < 0) descriptor = ::open(path.c_str(), O_RDONLY | kFlags);
  const FileHandle file(descriptor);
  struct stat status = {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0 || status.st_uid != ::geteuid()) return;
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return;
  // What waits for its first lock, in HoldTemporary, finds this one and takes another name.
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) return;
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace encore::internal
