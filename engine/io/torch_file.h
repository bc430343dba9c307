// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save with a few small tensors, such as the heads beside BGE-M3 (".pt"): a zip
// whose entries are stored, with a pickle (torch_pickle.h) and the bytes of each storage.

#ifndef ENCORE_ENGINE_IO_TORCH_FILE_H_
#define ENCORE_ENGINE_IO_TORCH_FILE_H_

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "encore/status.h"
#include "encore/tensor.h"

namespace encore::inline v0_1::internal {

// Names, and copies in F32. kUnsupported for other formats and for pickles with more than a
// dictionary of tensors in F32, F16 or BF16; kCorruptData for sizes that do not match. Errors do
// not name the file.
Result<std::vector<std::pair<std::string, Tensor>>> ReadTorchFile(std::span<const std::byte> file);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IO_TORCH_FILE_H_
