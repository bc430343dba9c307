// SPDX-License-Identifier: Apache-2.0
//
// The temporary folder, the signals that come meanwhile, and the rename.

#include "tools/encore/new_folder.h"

#include <array>
#include <csignal>
#include <system_error>

#include "engine/platform/path.h"
#include "engine/platform/temporary_name.h"
#include "tools/encore/failure.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

namespace fs = std::filesystem;

volatile std::sig_atomic_t caught_signal = 0;

// Of a terminal that is closed: the system and the shell both say so. Windows calls Ctrl-Break so
// as well.
#if defined(SIGHUP)
constexpr int kClosed = SIGHUP;
#else
constexpr int kClosed = SIGBREAK;
#endif

// A second one meets the default, which ends the process.
void NoteSignal(int number) {
  caught_signal = number;
  if (number != kClosed) (void)std::signal(number, SIG_DFL);
}

constexpr std::array kSignals = {SIGINT, SIGTERM, kClosed};
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
  throw Failure("OUT " + Printable(internal::PathText(path)) + ": " + what + ": " +
                reason.message());
}

void Sync(const fs::path& path) {
  const int error = internal::SyncPath(path);
  if (error != 0) Fail(path, "cannot be written", {error, std::generic_category()});
}

}  // namespace

NewFolder::NewFolder(const std::string& path) {
  std::error_code error;
  path_ = fs::absolute(internal::ToPath(path), error);
  if (!path_.has_filename()) path_ = path_.parent_path();  // "out/"
  CatchSignals();
  do {
    temporary_ = internal::TemporaryName(path_);
    if (!fs::create_directory(temporary_, error) || error) {
      RestoreSignals();
      Fail(internal::ToPath(path), "cannot make this folder", error);
    }
  } while (!internal::HoldTemporaryFolder(temporary_, &held_));
}

NewFolder::~NewFolder() {
  std::error_code error;
  // Windows removes no folder that is held.
  held_ = {};
  if (!committed_) fs::remove_all(temporary_, error);
  RestoreSignals();
  if (caught_signal != 0) (void)std::raise(caught_signal);
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
    throw Failure("OUT " + Printable(internal::PathText(path_)) +
                  ": exists by now, wanted a new name");
  }
  const int reason = internal::RenameHeldFolder(temporary_, path_, &held_);
  if (reason != 0) Fail(path_, "cannot be given its name", {reason, std::generic_category()});
  committed_ = true;
  output_written = true;
  Sync(path_.parent_path());
}

}  // namespace encore::tool
