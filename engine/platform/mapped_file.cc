// SPDX-License-Identifier: Apache-2.0
//
// MappedFile by mmap on POSIX systems, by reading everywhere else.

#include "engine/platform/mapped_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "engine/base/checksum.h"
#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/platform/descriptor.h"
#include "engine/platform/file_error.h"

#if ENCORE_HAVE_DESCRIPTORS
#include <sys/mman.h>
#include <time.h>
#endif

namespace encore::inline v0_1::internal {
namespace {

Status NotRegular(const std::string& path, bool is_folder) {
  return Status(ErrorCode::kIo, path + ": found " +
                                    (is_folder ? "a folder" : "a device, pipe or socket") +
                                    ", wanted a regular file");
}

Status OutOfMemory(const std::string& path, size_t size) {
  return Status(ErrorCode::kOutOfMemory,
                path + ": no memory for its " + std::to_string(size) + " bytes");
}

Status TooLarge(const std::string& path, uintmax_t found, size_t wanted) {
  return Status(ErrorCode::kCorruptData, path + ": found " + std::to_string(found) +
                                             " bytes, wanted at most " + std::to_string(wanted));
}

Status CutShort(const std::string& path, size_t got, size_t size) {
  return Status(ErrorCode::kIo, path + ": " + std::to_string(got) + " bytes could be read of " +
                                    std::to_string(size));
}

#if ENCORE_HAVE_DESCRIPTORS
Status Changed(const std::string& path, const std::string& found) {
  return Status(ErrorCode::kIo, QuotedPath(path) + " was changed since it was opened: found " +
                                    found +
                                    ". Open the file or its model again; to replace a file that is "
                                    "in use, write a new one beside it and rename that");
}

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
#endif

}  // namespace

void ReleaseFileMemory::operator()(const std::byte* memory) const {
#if ENCORE_HAVE_DESCRIPTORS
  if (mapped) {
    ::munmap(const_cast<std::byte*>(memory), size);
    ::close(descriptor);
    return;
  }
#endif
  std::free(const_cast<std::byte*>(memory));
}

void MappedFile::ReleasePages() const {
#if ENCORE_HAVE_DESCRIPTORS
  // Nothing was ever written to the mapping, so that the file has all there is. Should the system
  // refuse, the pages stay, which harms nobody.
  if (memory_.get_deleter().mapped) {
    (void)::madvise(const_cast<std::byte*>(memory_.get()), bytes().size(), MADV_DONTNEED);
  }
#endif
}

void MappedFile::PreferLargePages() const {
#if ENCORE_HAVE_DESCRIPTORS && defined(MADV_HUGEPAGE)
  if (memory_.get_deleter().mapped) {
    (void)::madvise(const_cast<std::byte*>(memory_.get()), bytes().size(), MADV_HUGEPAGE);
  }
#endif
}

Status MappedFile::CheckUnchanged(const std::string& path,
                                  const std::function<Result<bool>()>& same_bytes) const {
#if ENCORE_HAVE_DESCRIPTORS
  const ReleaseFileMemory& mapping = memory_.get_deleter();
  struct stat info = {};
  // Once more where the file was touched while its bytes were compared.
  bool settled = false;
  for (int64_t compared = 0; mapping.mapped;) {
    if (::fstat(mapping.descriptor, &info) != 0) {
      return SystemError(path, "cannot be examined", errno);
    }
    if (static_cast<uintmax_t>(info.st_size) != mapping.size) {
      return Changed(path, std::to_string(info.st_size) + " bytes, wanted the " +
                               std::to_string(mapping.size) + " it had");
    }
    const FileIdentity now = IdentityOf(info);
    if (now.modified == mapping.identity.modified || now.changed == *touched_) break;
    if (!same_bytes) return Changed(path, "another time of modification, wanted the one it had");
    if (now.changed == compared) {
      if (settled) *touched_ = compared;
      break;
    }
    compared = now.changed;
    settled = now.settled;
    ENCORE_ASSIGN_OR_RETURN(const bool is_same, same_bytes());
    if (!is_same) return Changed(path, "other bytes, wanted those it had");
  }
#endif
  return {};
}

Result<uint64_t> MappedFile::FileChecksum(const std::string& path, const Executor& executor) const {
  std::atomic<uint64_t> sum = 0;  // of the pieces' checksums, each by another seed
#if ENCORE_HAVE_DESCRIPTORS
  const ReleaseFileMemory& mapping = memory_.get_deleter();
  constexpr size_t kPiece = size_t{1} << 20;
  std::atomic<int> error = 0;
  const auto add_piece = [&](size_t i) {
    std::array<std::byte, size_t{16} << 10> some;
    Checksum checksum(i);
    const size_t end = std::min(mapping.size, (i + 1) * kPiece);
    for (size_t at = i * kPiece; at < end && error == 0;) {
      const ssize_t got = ::pread(mapping.descriptor, some.data(), std::min(some.size(), end - at),
                                  static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) error = errno;
      if (got <= 0) break;  // 0: it was shortened
      checksum.Add({some.data(), static_cast<size_t>(got)});
      at += static_cast<size_t>(got);
    }
    sum += checksum.value();
  };
  ENCORE_RETURN_IF_ERROR(RunParallel(executor, DivCeil(mapping.size, kPiece), add_piece));
  if (error != 0) return SystemError(path, "cannot be read", error);
#else
  (void)path, (void)executor;
#endif
  return sum.load();
}

std::string MappedFile::Identity() const {
  const FileIdentity& file = memory_.get_deleter().identity;
  if (!file.settled) return "";
  std::string text;
  for (const uint64_t number :
       {file.device, file.inode, uint64_t{bytes().size()}, static_cast<uint64_t>(file.modified),
        static_cast<uint64_t>(file.changed)}) {
    text += std::to_string(number) + " ";
  }
  return text;
}

#if ENCORE_HAVE_DESCRIPTORS
namespace {

// The descriptor of a regular file, and what the system says of it. own: see OpenOwn.
Result<int> OpenRegular(const std::string& path, bool own, struct stat* info) {
  // O_NONBLOCK: a pipe without a writer must not hang us before we can say that it is no regular
  // file.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (own ? O_NOFOLLOW : 0);
  Descriptor file(::open(path.c_str(), flags));
  if (file.get() < 0) return SystemError(path, "cannot be opened", errno);
  if (::fstat(file.get(), info) != 0) return SystemError(path, "cannot be examined", errno);
  if (!S_ISREG(info->st_mode)) return NotRegular(path, S_ISDIR(info->st_mode));
  if (own && info->st_uid != 0 && info->st_uid != ::geteuid()) {
    return Status(ErrorCode::kIo, path + ": found a file of user " + std::to_string(info->st_uid) +
                                      ", wanted one of user " + std::to_string(::geteuid()) +
                                      ", whose this process is, or of root");
  }
  return file.Release();
}

}  // namespace

// Also the way for file systems that cannot map.
Result<MappedFile::Memory> MappedFile::ReadAll(const std::string& path, size_t max_bytes,
                                               bool own) {
  struct stat info = {};
  ENCORE_ASSIGN_OR_RETURN(const int opened, OpenRegular(path, own, &info));
  const Descriptor file(opened);
  if (info.st_size <= 0) return Memory();
  if (static_cast<uintmax_t>(info.st_size) > max_bytes) {
    return TooLarge(path, static_cast<uintmax_t>(info.st_size), max_bytes);
  }
  const size_t size = static_cast<size_t>(info.st_size);
  char* memory = static_cast<char*>(std::malloc(size));
  if (memory == nullptr) return OutOfMemory(path, size);
  Memory owner(reinterpret_cast<const std::byte*>(memory),
               ReleaseFileMemory{.size = size, .identity = IdentityOf(info)});
  for (size_t got = 0; got < size;) {
    const ssize_t more = ::read(file.get(), memory + got, size - got);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return SystemError(path, "cannot be read", errno);
    if (more == 0) return CutShort(path, got, size);
    got += static_cast<size_t>(more);
  }
  return owner;
}
#else
Result<MappedFile::Memory> MappedFile::ReadAll(const std::string& path, size_t max_bytes,
                                               bool /*own*/) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return SystemError(path, "cannot be opened", ENOENT);
  if (!std::filesystem::is_regular_file(status)) {
    return NotRegular(path, std::filesystem::is_directory(status));
  }
  const uintmax_t file_size = std::filesystem::file_size(path, error);
  if (error) return SystemError(path, "has no size", error.value());
  if (file_size == 0) return Memory();
  if (file_size > max_bytes) return TooLarge(path, file_size, max_bytes);
  const size_t size = static_cast<size_t>(file_size);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) return SystemError(path, "cannot be opened", errno);
  void* memory = std::malloc(size);
  if (memory == nullptr) return OutOfMemory(path, size);
  Memory owner(static_cast<const std::byte*>(memory),
               ReleaseFileMemory{.size = size, .mapped = false});
  const size_t got = std::fread(memory, 1, size, file.get());
  if (got != size) return CutShort(path, got, size);
  return owner;
}
#endif

Result<MappedFile> MappedFile::Open(const std::string& path) { return Map(path, false); }
Result<MappedFile> MappedFile::OpenOwn(const std::string& path) { return Map(path, true); }

Result<MappedFile> MappedFile::Map(const std::string& path, bool own) {
  return GuardedFile(path, [&]() -> Result<MappedFile> {
    ENCORE_RETURN_IF_ERROR(CheckPath(path));
#if ENCORE_HAVE_DESCRIPTORS
    struct stat info = {};
    ENCORE_ASSIGN_OR_RETURN(const int opened, OpenRegular(path, own, &info));
    Descriptor file(opened);
    if (info.st_size <= 0) return MappedFile(Memory());
    if (static_cast<uintmax_t>(info.st_size) > std::numeric_limits<size_t>::max())
      return OutOfMemory(path, SIZE_MAX);
    const size_t size = static_cast<size_t>(info.st_size);
    void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (memory != MAP_FAILED) {
      return MappedFile(Memory(static_cast<const std::byte*>(memory),
                               ReleaseFileMemory{.size = size,
                                                 .mapped = true,
                                                 .descriptor = file.Release(),
                                                 .identity = IdentityOf(info)}));
    }
    if (errno == ENOMEM) return OutOfMemory(path, size);
#endif
    ENCORE_ASSIGN_OR_RETURN(Memory copy, ReadAll(path, SIZE_MAX, own));
    return MappedFile(std::move(copy));
  });
}

Result<MappedFile> MappedFile::OpenCopy(const std::string& path, size_t max_bytes) {
  return GuardedFile(path, [&]() -> Result<MappedFile> {
    ENCORE_RETURN_IF_ERROR(CheckPath(path));
    ENCORE_ASSIGN_OR_RETURN(Memory memory, ReadAll(path, max_bytes, false));
    return MappedFile(std::move(memory));
  });
}

}  // namespace encore::internal
