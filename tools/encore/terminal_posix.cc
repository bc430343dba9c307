// SPDX-License-Identifier: Apache-2.0
//
// Terminals, standard files and signals as POSIX has them.

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

#include "tools/encore/stop_signal.h"
#include "tools/encore/terminal.h"

namespace encore::tool {
namespace {

void Note(int /*signal*/) { RequestStop(); }

void Catch(int signal) {
  struct sigaction action = {};
  if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = Note;
  // Without SA_RESTART: reads are interrupted. Where a terminal is closed, the system and the shell
  // both say so: that is one request.
  action.sa_flags = signal == SIGHUP ? 0 : static_cast<int>(SA_RESETHAND);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

bool IsTerminal(int file) {
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return false;
  return ::isatty(file) != 0;
}

int64_t StdoutPosition() { return ::lseek(kStdoutFile, 0, SEEK_CUR); }

bool StdoutIsBrokenPipe() {
  pollfd file = {.fd = kStdoutFile, .events = POLLOUT, .revents = 0};
  return ::poll(&file, 1, 0) == 1 && (file.revents & POLLERR) != 0;
}

StandardFiles::StandardFiles(int* /*argc*/, char*** /*argv*/) {
  for (int file = 0; file <= kStderrFile; ++file) {
    // The lowest free number is this one. Reading from the first fails, as does writing to others.
    if (::fcntl(file, F_GETFD) < 0) (void)::open("/dev/null", file == 0 ? O_WRONLY : O_RDONLY);
  }
}

StandardFiles::~StandardFiles() = default;

void CatchStopSignals() {
  Catch(SIGINT);
  Catch(SIGTERM);
  Catch(SIGHUP);
}

void IgnoreFileSizeSignal() { (void)std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace encore::tool
