// SPDX-License-Identifier: Apache-2.0
//
// Windows' threads end without unwinding, and so need no handler.

#include "python/src/without_gil.h"

namespace pyencore {

void TakeGilBack(PyThreadState* state) { PyEval_RestoreThread(state); }

PyObject* CallPython(PyObject* function, PyObject* arguments) {
  return PyObject_Call(function, arguments, nullptr);
}

}  // namespace pyencore
