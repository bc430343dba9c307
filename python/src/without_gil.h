// SPDX-License-Identifier: Apache-2.0
//
// Work without the GIL. Every binding that releases it does so here.

#ifndef ENCORE_PYTHON_SRC_WITHOUT_GIL_H_
#define ENCORE_PYTHON_SRC_WITHOUT_GIL_H_

#include <Python.h>

namespace pyencore {

// PyEval_RestoreThread for a thread that nobody ends. Once the interpreter ends, no thread but the
// ending one gets the GIL back. Python 3.14 lets such a thread sleep; before, it calls
// pthread_exit, whose unwinding would meet frames that are noexcept (nanobind's, destructors) and
// abort the process. Here the thread sleeps in any version, until the process is gone. What it
// works with stays alive, as its Python frames do.
void TakeGilBack(PyThreadState* state);

// PyObject_Call, by whose Python code such a thread may be met as well.
PyObject* CallPython(PyObject* function, PyObject* arguments);

class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;
  ~ReleasedGil() { TakeGilBack(state_); }

 private:
  PyThreadState* state_;
};

template <typename F>
auto WithoutGil(F&& work) {
  const ReleasedGil released;
  return work();
}

}  // namespace pyencore

#endif  // ENCORE_PYTHON_SRC_WITHOUT_GIL_H_
