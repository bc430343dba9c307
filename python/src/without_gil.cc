// SPDX-License-Identifier: Apache-2.0
//
// Compiled without exceptions (CMakeLists.txt): then a handler of pthread_cleanup_push is called
// where pthread_exit's unwinding reaches it, and no unwinder of C++ takes part. The module has one
// of its own, linked statically, which cannot catch what the system's unwinds.

#include "python/src/without_gil.h"

#include <pthread.h>
#include <unistd.h>

namespace pyencore {
namespace {

void SleepForEver(void* /*unused*/) {
  for (;;) pause();
}

}  // namespace

void TakeGilBack(PyThreadState* state) {
  pthread_cleanup_push(&SleepForEver, nullptr);
  PyEval_RestoreThread(state);
  pthread_cleanup_pop(0);
}

PyObject* CallPython(PyObject* function, PyObject* arguments) {
  PyObject* result = nullptr;
  pthread_cleanup_push(&SleepForEver, nullptr);
  result = PyObject_Call(function, arguments, nullptr);
  pthread_cleanup_pop(0);
  return result;
}

}  // namespace pyencore
