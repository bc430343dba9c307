// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C for commands that keep what they have done so far.

#ifndef ENCORE_TOOLS_ENCORE_STOP_SIGNAL_H_
#define ENCORE_TOOLS_ENCORE_STOP_SIGNAL_H_

#include <exception>

namespace encore::tool {

// From here on, the first SIGINT, SIGTERM or SIGHUP (a closed terminal) is only noted; it also ends
// a read that waits for a pipe or a person (EINTR). A second SIGINT or SIGTERM ends the process, as
// both do by default. A signal that the parent process has chosen to ignore stays ignored. Windows
// has Ctrl-C, Ctrl-Break, and the closing of its console and of the session in their place.
void CatchStopSignals();

// What they do. May be called by a handler of signals.
void RequestStop();
// One has come. False in a command that does not catch them.
bool StopRequested();
// Throws Stopped then.
struct Stopped : std::exception {};
void ThrowIfStopped();

// Writing beyond the limit of files (ulimit -f) becomes an error, EFBIG, rather than the end.
void IgnoreFileSizeSignal();

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_STOP_SIGNAL_H_
