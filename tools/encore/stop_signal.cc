// SPDX-License-Identifier: Apache-2.0
//
// Notes a signal in a flag. What catches it is beside the terminal's: terminal_posix.cc and so on.

#include "tools/encore/stop_signal.h"

#include <csignal>

namespace encore::tool {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

}  // namespace

void RequestStop() { stop_requested = 1; }

bool StopRequested() { return stop_requested != 0; }

void ThrowIfStopped() {
  if (StopRequested()) throw Stopped();
}

}  // namespace encore::tool
