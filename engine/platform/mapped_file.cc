// SPDX-License-Identifier: Apache-2.0
//
// MappedFile over what file_handle.h has for every system.

#include "engine/platform/mapped_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "engine/base/checksum.h"
#include "engine/base/int_math.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/platform/file_error.h"

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

Status Changed(const std::string& path, const std::string& found) {
  return Status(ErrorCode::kIo, QuotedPath(path) + " was changed since it was opened: found " +
                                    found +
                                    ". Open the file or its model again; to replace a file that is "
                                    "in use, write a new one beside it and rename that");
}

// A regular file, and what the system says of it. own: see OpenOwn.
Result<FileHandle> OpenRegular(const std::string& path, bool own, FileState* state) {
  ENCORE_ASSIGN_OR_RETURN(FileHandle file, OpenToRead(path, own));
  const int error = Examine(file.get(), state);
  if (error != 0) return SystemError(path, "cannot be examined", error);
  if (!state->is_regular) return NotRegular(path, state->is_folder);
  return file;
}

}  // namespace

void ReleaseFileMemory::operator()(const std::byte* memory) const {
  if (mapped) {
    UnmapFile(memory, size);
    FileHandle(file).Reset(FileHandle::kNone);
  } else {
    std::free(const_cast<std::byte*>(memory));
  }
}

// Nothing was ever written to the mapping, so that the file has all there is. Should the system
// refuse, the pages stay, which harms nobody.
void MappedFile::ReleasePages() const {
  if (memory_.get_deleter().mapped) ReleaseMappedPages(memory_.get(), bytes().size());
}

void MappedFile::PreferLargePages() const {
  if (memory_.get_deleter().mapped) PreferLargeMappedPages(memory_.get(), bytes().size());
}

Status MappedFile::CheckUnchanged(const std::string& path,
                                  const std::function<Result<bool>()>& same_bytes) const {
  const ReleaseFileMemory& mapping = memory_.get_deleter();
  FileState state;
  // Once more where the file was touched while its bytes were compared.
  bool settled = false;
  for (int64_t compared = 0; mapping.mapped;) {
    const int error = Examine(mapping.file, &state);
    if (error != 0) return SystemError(path, "cannot be examined", error);
    if (state.size != mapping.size) {
      return Changed(path, std::to_string(state.size) + " bytes, wanted the " +
                               std::to_string(mapping.size) + " it had");
    }
    const FileIdentity& now = state.identity;
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
  return {};
}

Result<uint64_t> MappedFile::FileChecksum(const std::string& path, const Executor& executor) const {
  std::atomic<uint64_t> sum = 0;  // of the pieces' checksums, each by another seed
  const ReleaseFileMemory& mapping = memory_.get_deleter();
  constexpr size_t kPiece = size_t{1} << 20;
  std::atomic<int> error = 0;
  const auto add_piece = [&](size_t i) {
    std::array<std::byte, size_t{16} << 10> some;
    Checksum checksum(i);
    const size_t end = std::min(mapping.size, (i + 1) * kPiece);
    for (size_t at = i * kPiece; at < end && error == 0;) {
      size_t got = 0;
      const int wrong =
          ReadAt(mapping.file, at, some.data(), std::min(some.size(), end - at), &got);
      if (wrong != 0) error = wrong;
      if (got == 0) break;  // it was shortened
      checksum.Add({some.data(), got});
      at += got;
    }
    sum += checksum.value();
  };
  ENCORE_RETURN_IF_ERROR(RunParallel(executor, DivCeil(mapping.size, kPiece), add_piece));
  if (error != 0) return SystemError(path, "cannot be read", error);
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

// Also the way for file systems that cannot map.
Result<MappedFile::Memory> MappedFile::ReadAll(const std::string& path, size_t max_bytes,
                                               bool own) {
  FileState state;
  ENCORE_ASSIGN_OR_RETURN(const FileHandle file, OpenRegular(path, own, &state));
  if (state.size == 0) return Memory();
  if (state.size > max_bytes) return TooLarge(path, state.size, max_bytes);
  const auto size = static_cast<size_t>(state.size);
  auto* const memory = static_cast<std::byte*>(std::malloc(size));
  if (memory == nullptr) return OutOfMemory(path, size);
  Memory owner(memory, ReleaseFileMemory{.size = size, .identity = state.identity});
  for (size_t got = 0; got < size;) {
    size_t more = 0;
    const int error = ReadAt(file.get(), got, memory + got, size - got, &more);
    if (error != 0) return SystemError(path, "cannot be read", error);
    if (more == 0) return CutShort(path, got, size);
    got += more;
  }
  return owner;
}

Result<MappedFile> MappedFile::Open(const std::string& path) { return Map(path, false); }
Result<MappedFile> MappedFile::OpenOwn(const std::string& path) { return Map(path, true); }

Result<MappedFile> MappedFile::Map(const std::string& path, bool own) {
  return GuardedFile(path, [&]() -> Result<MappedFile> {
    ENCORE_RETURN_IF_ERROR(CheckPath(path));
    FileState state;
    ENCORE_ASSIGN_OR_RETURN(FileHandle file, OpenRegular(path, own, &state));
    if (state.size == 0) return MappedFile(Memory());
    if (state.size > std::numeric_limits<size_t>::max()) return OutOfMemory(path, SIZE_MAX);
    const auto size = static_cast<size_t>(state.size);
    const std::byte* memory = nullptr;
    const int error = MapFile(file.get(), size, &memory);
    if (error == 0) {
      return MappedFile(Memory(
          memory,
          ReleaseFileMemory{
              .size = size, .mapped = true, .file = file.Release(), .identity = state.identity}));
    }
    if (error == ENOMEM) return OutOfMemory(path, size);
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
