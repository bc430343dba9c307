// SPDX-License-Identifier: Apache-2.0
//
// Consoles, standard files and what ends programs as Windows has them.

#include <windows.h>
// After that one
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "engine/platform/path.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/terminal.h"

namespace encore::tool {
namespace {

HANDLE HandleOf(int file) { return reinterpret_cast<HANDLE>(::_get_osfhandle(file)); }

HANDLE main_thread = nullptr;

// On a thread that Windows makes for it. False is for the default, which ends the process.
BOOL WINAPI Note(DWORD event) {
  const bool closing = event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT;
  if (StopRequested() && !closing) return FALSE;
  RequestStop();
  (void)::CancelSynchronousIo(main_thread);
  // When this returns, the process ends. It has some seconds to end by itself.
  if (closing) ::Sleep(INFINITE);
  return TRUE;
}

}  // namespace

bool IsTerminal(int file) {
  const char* terminal = std::getenv("TERM");
  if (terminal != nullptr && std::string_view(terminal) == "dumb") return false;
  DWORD mode = 0;
  return ::GetConsoleMode(HandleOf(file), &mode) != 0 &&
         ::SetConsoleMode(HandleOf(file), mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

int64_t StdoutPosition() { return ::_lseeki64(kStdoutFile, 0, SEEK_CUR); }

// Asked when a write has failed, for which a pipe has no other reason.
bool StdoutIsBrokenPipe() { return ::GetFileType(HandleOf(kStdoutFile)) == FILE_TYPE_PIPE; }

StandardFiles::StandardFiles(int* argc, char*** argv)
    : code_pages_before_({::GetConsoleCP(), ::GetConsoleOutputCP()}) {
  for (int file = 0; file <= kStderrFile; ++file) (void)::_setmode(file, _O_BINARY);
  (void)::SetConsoleCP(CP_UTF8);
  (void)::SetConsoleOutputCP(CP_UTF8);
  int count = 0;
  wchar_t** const words = ::CommandLineToArgvW(::GetCommandLineW(), &count);
  if (words == nullptr) return;
  for (int i = 0; i < count; ++i) arguments_.push_back(internal::PathText(words[i]));
  (void)::LocalFree(words);
  for (std::string& argument : arguments_) argv_.push_back(argument.data());
  argv_.push_back(nullptr);
  *argc = count;
  *argv = argv_.data();
}

StandardFiles::~StandardFiles() {
  const unsigned input = code_pages_before_.front();
  const unsigned output = code_pages_before_.back();
  if (input != 0) (void)::SetConsoleCP(input);
  if (output != 0) (void)::SetConsoleOutputCP(output);
}

void CatchStopSignals() {
  const HANDLE process = ::GetCurrentProcess();
  (void)::DuplicateHandle(process, ::GetCurrentThread(), process, &main_thread, 0, FALSE,
                          DUPLICATE_SAME_ACCESS);
  (void)::SetConsoleCtrlHandler(Note, TRUE);
}

void IgnoreFileSizeSignal() {}

}  // namespace encore::tool
