// SPDX-License-Identifier: Apache-2.0
//
// Options by their names, work without the GIL, and encore's tensors as numpy arrays.

#ifndef ENCORE_PYTHON_SRC_MODEL_OPTIONS_H_
#define ENCORE_PYTHON_SRC_MODEL_OPTIONS_H_

#include <string>

#include "encore/precision.h"
#include "encore/text_encoder.h"
#include "python/src/bindings.h"

namespace pyencore {

// ValueError names the modes.
encore::PoolingMode PoolingFromName(const std::string& name);
// "0.linear1": a layer, counted from 0, and qkv, out_proj, linear1 or linear2. ValueError.
encore::MatrixOfLayer MatrixFromName(const std::string& name);

template <typename F>
auto WithoutGil(F&& work) {
  const nb::gil_scoped_release released;
  return work();
}

// A numpy array that owns the tensor's memory, nothing copied. F32, rank 1 or more.
using Array = nb::ndarray<nb::numpy, float>;
Array ArrayOf(encore::Tensor tensor);

}  // namespace pyencore

#endif  // ENCORE_PYTHON_SRC_MODEL_OPTIONS_H_
