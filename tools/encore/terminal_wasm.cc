// SPDX-License-Identifier: Apache-2.0
//
// Standard files of WASI, whose host keeps terminals and signals to itself.

#include <unistd.h>

#include <cstdlib>

#include "tools/encore/stop_signal.h"
#include "tools/encore/terminal.h"

namespace encore::tool {

bool IsTerminal(int /*file*/) { return false; }

int64_t StdoutPosition() { return ::lseek(kStdoutFile, 0, SEEK_CUR); }

bool StdoutIsBrokenPipe() { return false; }

// WASI has no working folder either, but a host may tell its own.
StandardFiles::StandardFiles(int* /*argc*/, char*** /*argv*/) {
  if (const char* folder = std::getenv("PWD")) (void)::chdir(folder);
}
StandardFiles::~StandardFiles() = default;

void CatchStopSignals() {}
void IgnoreFileSizeSignal() {}

}  // namespace encore::tool
