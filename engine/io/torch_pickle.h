// SPDX-License-Identifier: Apache-2.0
//
// The pickle inside a file of torch.save, read and never run: the few opcodes, and the five names,
// that a dictionary of tensors is made of. Everything else is refused.

#ifndef ENCORE_ENGINE_IO_TORCH_PICKLE_H_
#define ENCORE_ENGINE_IO_TORCH_PICKLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "encore/safetensors.h"
#include "encore/status.h"

namespace encore::inline v0_1::internal {

struct PickledTensor {
  std::string name;
  std::string storage;          // the name of its bytes: "0"
  size_t storage_elements = 0;  // of all of these
  size_t offset = 0;            // of its first element among them
  DType dtype = DType::kF32;    // F32, F16 or BF16
  std::vector<size_t> shape;    // rows follow each other without gaps
};

// A linear layer's has 300 bytes, two tensors and two dimensions. Several tensors may be one
// storage: more of them would be more memory than the file has.
inline constexpr size_t kMaxPickleBytes = size_t{1} << 16;
inline constexpr size_t kMaxPickledTensors = 4;
inline constexpr size_t kMaxPickledRank = 2;

// kUnsupported for what is not of this form, with the place and what was found there.
Result<std::vector<PickledTensor>> ReadPickledTensors(std::string_view pickle);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_TORCH_PICKLE_H_
