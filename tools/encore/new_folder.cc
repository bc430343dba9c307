// SPDX-License-Identifier: Apache-2.0
//
// The temporary folder, the signals that come meanwhile, and the rename.

#include "tools/encore/new_folder.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "engine/platform/descriptor.h"
#include "engine/platform/temporary_name.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

namespace fs = std::filesystem;

volatile std::sig_atomic_t caught_signal = 0;

#if ENCORE_HAVE_DESCRIPTORS
// A second one meets the default, which ends the process. But where a terminal is closed, the
// system and the shell both say so.
void NoteSignal(int number) {
  caught_signal = number;
  if (number != SIGHUP) (void)std::signal(number, SIG_DFL);
}

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
#else
void NoteSignal(int number) {
  caught_signal = number;
  (void)std::signal(number, SIG_DFL);
}

constexpr std::array kSignals = {SIGINT, SIGTERM};
#endif
std::array<void (*)(int), kSignals.size()> handlers_before = {};

void CatchSignals() {
  caught_signal = 0;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    handlers_before[i] = std::signal(kSignals[i], NoteSignal);
    // Whoever started the process wants it to go on (nohup).
    if (handlers_before[i] == SIG_IGN) (void)std::signal(kSignals[i], SIG_IGN);
  }
}

void RestoreSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (handlers_before[i] != SIG_ERR) (void)std::signal(kSignals[i], handlers_before[i]);
  }
}

[[noreturn]] void Fail(const fs::path& path, const std::string& what, std::error_code reason) {
  throw Failure("OUT " + Printable(path.string()) + ": " + what + ": " + reason.message());
}

// A file's bytes, or a folder's names, to the disk. Some file systems have nothing to sync
// (EINVAL).
void Sync([[maybe_unused]] const fs::path& path) {
#if ENCORE_HAVE_DESCRIPTORS
  const internal::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || (::fsync(file.get()) != 0 && errno != EINVAL)) {
    Fail(path, "cannot be written", {errno, std::generic_category()});
  }
#endif
}

}  // namespace

NewFolder::NewFolder(const std::string& path) {
  std::error_code error;
  path_ = fs::absolute(path, error);
  if (!path_.has_filename()) path_ = path_.parent_path();  // "out/"
  CatchSignals();
  do {
    temporary_ = internal::TemporaryName(path_);
    if (!fs::create_directory(temporary_, error) || error) {
      RestoreSignals();
      Fail(path, "cannot make this folder", error);
    }
  } while (!Hold());
}

NewFolder::~NewFolder() {
  std::error_code error;
  if (!committed_) fs::remove_all(temporary_, error);
#if ENCORE_HAVE_DESCRIPTORS
  if (held_ >= 0) (void)::close(held_);
#endif
  RestoreSignals();
  if (caught_signal != 0) (void)std::raise(caught_signal);
}

bool NewFolder::Hold() {
#if ENCORE_HAVE_DESCRIPTORS
  held_ = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
  if (held_ < 0 || internal::HoldTemporary(held_)) return true;
  (void)::close(held_);
  return false;
#else
  return true;
#endif
}

bool NewFolder::Interrupted() { return caught_signal != 0; }

void NewFolder::Commit() {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(temporary_, error)) {
    if (Interrupted()) throw Failure("ended by a signal");
    Sync(entry.path());
  }
  if (error) Fail(temporary_, "cannot be read", error);
  Sync(temporary_);
  // A rename would take the place of an empty folder.
  if (fs::exists(fs::symlink_status(path_, error))) {
    throw Failure("OUT " + Printable(path_.string()) + ": exists by now, wanted a new name");
  }
  fs::rename(temporary_, path_, error);
  if (error) Fail(path_, "cannot be given its name", error);
  committed_ = true;
  output_written = true;
  Sync(path_.parent_path());
}

}  // namespace encore::tool
