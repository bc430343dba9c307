// SPDX-License-Identifier: Apache-2.0
//
// Notes a signal in a flag.

#include "tools/encore/stop_signal.h"

#include <csignal>

namespace encore::tool {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

void Note(int /*signal*/) { stop_requested = 1; }

void Catch(int signal) {
#if defined(_WIN32)
  std::signal(signal, Note);  // which is reset to the default when the signal comes
#else
  struct sigaction action = {};
  if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = Note;
  // Without SA_RESTART: reads are interrupted. Where a terminal is closed, the system and the shell
  // both say so: that is one request.
  action.sa_flags = signal == SIGHUP ? 0 : static_cast<int>(SA_RESETHAND);
  ::sigaction(signal, &action, nullptr);
#endif
}

}  // namespace

void CatchStopSignals() {
  Catch(SIGINT);
  Catch(SIGTERM);
#if !defined(_WIN32)
  Catch(SIGHUP);
#endif
}

void IgnoreFileSizeSignal() {
#if !defined(_WIN32)
  (void)std::signal(SIGXFSZ, SIG_IGN);
#endif
}

bool StopRequested() { return stop_requested != 0; }

void ThrowIfStopped() {
  if (StopRequested()) throw Stopped();
}

}  // namespace encore::tool
