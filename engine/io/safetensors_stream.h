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

// Takes the next bytes of a tensor.
using ByteSink = std::function<Status(std::span<const std::byte> bytes)>;

struct StreamedTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  // Called once, when the tensor's turn has come: hands all of its bytes to the sink, dense and
  // row-major, in as many pieces as it likes. An error, the sink's or its own, ends the writing.
  std::function<Status(const ByteSink& sink)> write;
};

// As WriteSafetensors, which says where tensors lie and what is refused. Their turns come by
// descending element size, else in the given order. kIo if one has written more or fewer
// bytes than its shape has.
Status WriteSafetensorsStream(const std::string& path, std::span<const StreamedTensor> tensors,
                              const SafetensorsMetadata& metadata);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_SAFETENSORS_STREAM_H_
