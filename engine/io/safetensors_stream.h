// SPDX-License-Identifier: Apache-2.0
//
// Writing a safetensors file whose tensors are made one after another, so that no two need be in
// memory at once.

#ifndef ENCORE_ENGINE_IO_SAFETENSORS_STREAM_H_
#define ENCORE_ENGINE_IO_SAFETENSORS_STREAM_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "encore/safetensors.h"
#include "encore/status.h"
#include "encore/tensor.h"

namespace encore::inline v0_1::internal {

// Writes the next bytes of a tensor.
using ByteSink = std::function<Status(std::span<const std::byte> bytes)>;

struct StreamedTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  // Called once: passes all bytes of the tensor to the sink, dense and row-major, in any pieces. An
  // error of it or of the sink ends the writing.
  std::function<Status(const ByteSink& sink)> write;
};

// As WriteSafetensors. Tensors are written by descending element size, else in the given order. kIo
// if one writes more or fewer bytes than its shape has.
Status WriteSafetensorsStream(const std::string& path, std::span<const StreamedTensor> tensors,
                              const SafetensorsMetadata& metadata);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_SAFETENSORS_STREAM_H_
