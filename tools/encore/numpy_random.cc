// SPDX-License-Identifier: Apache-2.0
//
// NumpyRandom::Rand. The generator itself is in numpy_random.h.

#include "tools/encore/numpy_random.h"

#include "tools/encore/failure.h"

namespace encore::tool {

Tensor NumpyRandom::Rand(const Shape& shape) {
  Tensor tensor = Take(Tensor::Create(DType::kF32, shape));
  float* data = static_cast<float*>(tensor.data());
  const size_t count = tensor.size_bytes() / sizeof(float);
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<float>(Next());
  return tensor;
}

}  // namespace encore::tool
