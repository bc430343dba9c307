// SPDX-License-Identifier: Apache-2.0
//
// FileWriter on the C and C++ libraries and file_handle.h, and on Linux with files without names.

#include "engine/platform/file_writer.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/platform/file_error.h"
#include "engine/platform/path.h"
#include "engine/platform/temporary_name.h"

#if defined(__linux__)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#if defined(__linux__) && defined(O_TMPFILE)
#define ENCORE_HAVE_NAMELESS 1
#else
#define ENCORE_HAVE_NAMELESS 0
#endif

namespace encore::inline v0_1::internal {
namespace {

namespace fs = std::filesystem;

// How many names for a temporary are tried; that one is taken is all but impossible.
constexpr int kMaxAttempts = 100;

#if ENCORE_HAVE_NAMELESS
int OpenWithoutName(const fs::path& folder) {
  return ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

// Gives a file that has no name this one, which must be new. 0, or the error number.
int Link(FileHandle::Value descriptor, const fs::path& name) {
  const std::string file = "/proc/self/fd/" + std::to_string(descriptor);
  const int result = ::linkat(AT_FDCWD, file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  return result == 0 ? 0 : errno;
}

// Whether this process may do that in the destination's folder: systems without /proc, some file
// systems and some sandboxes do not let it. Tries with an empty file, until it has worked once on
// the device.
bool MayLink(const fs::path& destination) {
  static std::atomic<uint64_t> worked{0};  // on that device, plus 1
  const FileHandle file(OpenWithoutName(destination.parent_path()));
  struct stat status = {};
  if (file.get() < 0 || ::fstat(static_cast<int>(file.get()), &status) != 0) return false;
  const uint64_t device = static_cast<uint64_t>(status.st_dev) + 1;
  if (worked.load(std::memory_order_relaxed) == device) return true;
  const fs::path name = TemporaryName(destination);
  if (Link(file.get(), name) != 0) return false;
  (void)::unlink(name.c_str());
  worked.store(device, std::memory_order_relaxed);
  return true;
}
#endif

}  // namespace

int FileWriter::OpenNameless() {
#if ENCORE_HAVE_NAMELESS
  if (!MayLink(destination_)) return ENOTSUP;
  const int descriptor = OpenWithoutName(destination_.parent_path());
  if (descriptor < 0) return errno;
  file_.reset(::fdopen(descriptor, "wb"));
  if (file_) return 0;
  const int reason = errno;
  (void)::close(descriptor);
  return reason;
#else
  return ENOTSUP;
#endif
}

int FileWriter::OpenNamed() {
  int reason = EEXIST;
  for (int i = 0; i < kMaxAttempts && reason == EEXIST; ++i) {
    fs::path name = TemporaryName(destination_);
    // "x": only if the name is new, so that nobody's file is overwritten and no planted link is
    // followed.
    file_.reset(OpenStream(name, "wbx"));
    reason = file_ ? EEXIST : errno;
    if (!file_ || !HoldTemporary(HandleOf(file_.get()))) continue;
    temporary_ = std::move(name);
    return 0;
  }
  return reason;
}

Result<FileWriter> FileWriter::Create(const std::string& path, Temporary temporary,
                                      LinkAtPath link) {
  return GuardedFile(path, [&]() -> Result<FileWriter> {
    ENCORE_RETURN_IF_ERROR(CheckPath(path));
    FileWriter writer;
    writer.path_ = path;
    std::error_code error;
    fs::path destination = ToPath(path);
    fs::file_status old = fs::symlink_status(destination, error);
    if (fs::is_symlink(old) && link == LinkAtPath::kFollowed) {
      destination = fs::canonical(destination, error);
      if (error) return SystemError(path, "is a symbolic link that leads nowhere", error);
      old = fs::status(destination, error);
    }
    if (fs::exists(old) && !fs::is_regular_file(old) && !fs::is_symlink(old)) {
      return Status(ErrorCode::kIo,
                    path + ": found " +
                        (fs::is_directory(old) ? "a folder" : "a device, pipe or socket") +
                        ", wanted a regular file or a new name");
    }
    if (!destination.has_filename()) {
      return Status(ErrorCode::kIo,
                    "'" + path + "': found no file name at its end, wanted one to write to");
    }
    // Where the program may go meanwhile does not matter.
    writer.destination_ = fs::absolute(destination, error);
    if (error) return SystemError(path, "has no folder", error);

    if (temporary == Temporary::kNamed || writer.OpenNameless() != 0) {
      const int reason = writer.OpenNamed();
      if (reason != 0) return SystemError(path, "no temporary file can be made beside it", reason);
    }
    if (link == LinkAtPath::kReplaced) {
      LetOnlyOwnerWrite(writer.file_.get());
    } else if (fs::exists(old)) {
      const int reason = SetPermissions(writer.file_.get(), writer.temporary_, old.permissions());
      if (reason != 0) return SystemError(path, "its permissions cannot be kept", reason);
    }
    return writer;
  });
}

Result<FileWriter> FileWriter::CreateOwn(const std::string& path) {
  return GuardedFile(path, [&]() -> Result<FileWriter> {
    const fs::path folder = ToPath(path).parent_path();
    std::error_code error;  // found again when writing
    fs::create_directories(folder, error);
    RemoveAbandoned(folder);
    return Create(path, Temporary::kNameless, LinkAtPath::kReplaced);
  });
}

Status FileWriter::Write(std::span<const std::byte> bytes) {
  // Not all systems write more than 4 GiB in one call.
  constexpr size_t kMostAtOnce = size_t{1} << 30;
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kMostAtOnce);
    if (std::fwrite(bytes.data(), 1, size, file_.get()) != size) {
      return SystemError(path_, "cannot be written", errno);
    }
    bytes = bytes.subspan(size);
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
  ENCORE_RETURN_IF_ERROR(Write(bytes));
  if (std::fseek(file_.get(), 0, SEEK_END) == 0) return Status();
  return SystemError(path_, "cannot be written", errno);
}

Status FileWriter::Commit() {
  return GuardedFile(path_, [&]() -> Status {
    if (std::fflush(file_.get()) != 0) return SystemError(path_, "cannot be written", errno);
    // Before the rename: after a power cut, the name must not lead to a file whose bytes never
    // arrived.
    int reason = SyncStream(file_.get());
    if (reason != 0) return SystemError(path_, "cannot be written", reason);
    // What has no name ends with its last handle, and so does the hold of what has one.
    const FileHandle kept = KeepHold(file_.get());
    if (temporary_.empty() && kept.get() == FileHandle::kNone) {
      return SystemError(path_, "cannot be written", errno);
    }
    reason = std::fclose(file_.release()) == 0 ? 0 : errno;
    if (reason == 0) reason = Publish(kept.get());
    if (reason == 0) return Status();
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove(temporary_, ignored);
    return SystemError(path_, "cannot be written", reason);
  });
}

int FileWriter::Publish([[maybe_unused]] FileHandle::Value nameless) {
#if ENCORE_HAVE_NAMELESS
  if (temporary_.empty()) {
    // Where there was no file, its name is all that is missing. An old one is never unlinked: only
    // a rename replaces it at once, and that needs a name to begin with.
    int reason = Link(nameless, destination_);
    if (reason != EEXIST) return reason;
    (void)HoldTemporary(nameless);
    for (int i = 0; i < kMaxAttempts && reason == EEXIST; ++i) {
      fs::path name = TemporaryName(destination_);
      reason = Link(nameless, name);
      if (reason == 0) temporary_ = std::move(name);
    }
    if (reason != 0) return reason;
  }
#endif
  return RenameOver(temporary_, destination_);
}

void FileWriter::Discard() {
  if (!file_) return;
  file_.reset();
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove(temporary_, ignored);
}

}  // namespace encore::internal
