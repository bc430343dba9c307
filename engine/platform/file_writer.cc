// SPDX-License-Identifier: Apache-2.0
//
// FileWriter on the C and C++ libraries, plus fsync where there is one. Not here: what is written
// (engine/io).

#include "engine/platform/file_writer.h"

#include <atomic>
#include <cerrno>
#include <exception>
#include <limits>
#include <new>
#include <system_error>
#include <utility>

#include "engine/base/out_of_memory.h"
#include "engine/platform/system_error.h"

#if defined(__unix__) || defined(__APPLE__)
#define ENCORE_HAVE_FSYNC 1
#include <unistd.h>
#else
#define ENCORE_HAVE_FSYNC 0
#endif

namespace encore::internal {
namespace {

namespace fs = std::filesystem;

// How many names for the temporary are tried; another process's leftovers may hold some.
constexpr int kMaxAttempts = 100;

// A number that differs between the writers of this process, and nearly always between processes.
unsigned long long NextNumber() {
  static std::atomic<unsigned long long> counter{0};
  unsigned long long number = counter.fetch_add(1);
#if ENCORE_HAVE_FSYNC
  number += static_cast<unsigned long long>(::getpid()) << 24;
#endif
  return number;
}

}  // namespace

Result<FileWriter> FileWriter::Create(const std::string& path) try {
  FileWriter writer;
  writer.path_ = path;
  std::error_code error;
  fs::path destination(path);
  if (fs::is_symlink(fs::symlink_status(destination, error))) {
    destination = fs::canonical(destination, error);
    if (error) return SystemError(path, "is a symbolic link that leads nowhere", error.value());
  }
  const fs::file_status old = fs::status(destination, error);
  if (fs::exists(old) && !fs::is_regular_file(old)) {
    return Status(ErrorCode::kIo,
                  path + ": found " +
                      (fs::is_directory(old) ? "a folder" : "a device, pipe or socket") +
                      ", wanted a regular file or a new name");
  }
  if (!destination.has_filename()) {
    return Status(ErrorCode::kIo,
                  "'" + path + "': found no file name at its end, wanted one to write to");
  }
  writer.destination_ = destination;

  int reason = EEXIST;
  for (int i = 0; i < kMaxAttempts && reason == EEXIST; ++i) {
    writer.temporary_ =
        destination.parent_path() / (".encore-" + std::to_string(NextNumber()) + ".tmp");
    // "x": only if the name is new, so that nobody's file is overwritten and no planted link is
    // followed.
    writer.file_.reset(std::fopen(writer.temporary_.string().c_str(), "wbx"));
    if (writer.file_) break;
    reason = errno;
  }
  if (!writer.file_) return SystemError(path, "no temporary file can be made beside it", reason);
  if (fs::exists(old)) {
    fs::permissions(writer.temporary_, old.permissions(), error);
    if (error) return SystemError(path, "its permissions cannot be kept", error.value());
  }
  return writer;
} catch (const std::bad_alloc&) {
  return OutOfMemory();
} catch (const std::exception& e) {  // a path that the system's own encoding cannot express
  return Status(ErrorCode::kIo, path + ": " + e.what());
}

Status FileWriter::Write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return Status();
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    return SystemError(path_, "cannot be written", errno);
  }
  return Status();
}

Status FileWriter::Replace(size_t offset, std::span<const std::byte> bytes) {
  if (offset > static_cast<size_t>(std::numeric_limits<long>::max())) {
    return Status(ErrorCode::kIo, path_ + ": cannot be written so far from its start");
  }
  if (std::fseek(file_.get(), static_cast<long>(offset), SEEK_SET) != 0) {
    return SystemError(path_, "cannot be written", errno);
  }
  if (Status status = Write(bytes); !status.ok()) return status;
  if (std::fseek(file_.get(), 0, SEEK_END) == 0) return Status();
  return SystemError(path_, "cannot be written", errno);
}

Status FileWriter::Commit() {
  if (std::fflush(file_.get()) != 0) return SystemError(path_, "cannot be written", errno);
#if ENCORE_HAVE_FSYNC
  // Before the rename: after a power cut, the name must not lead to a file whose bytes never
  // arrived. EINVAL means a file system without fsync.
  if (::fsync(::fileno(file_.get())) != 0 && errno != EINVAL)
    return SystemError(path_, "cannot be written", errno);
#endif
  const int closed = std::fclose(file_.release());
  const int close_error = errno;
  std::error_code error;
  if (closed == 0) fs::rename(temporary_, destination_, error);
  if (closed == 0 && !error) return Status();
  std::error_code ignored;
  fs::remove(temporary_, ignored);
  return SystemError(path_, "cannot be written", closed != 0 ? close_error : error.value());
}

void FileWriter::Discard() {
  if (!file_) return;
  file_.reset();
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

}  // namespace encore::internal
