// SPDX-License-Identifier: Apache-2.0
//
// A Dense module: a linear layer after the pooling, with an activation behind it.

#ifndef ENCORE_ENGINE_TEXT_DENSE_H_
#define ENCORE_ENGINE_TEXT_DENSE_H_

#include <cstddef>
#include <string>

#include "encore/ops.h"
#include "encore/status.h"
#include "engine/text/folder_files.h"
#include "engine/text/torch_activation.h"

namespace encore::inline v0_1::internal {

struct Dense {
  PackedLinear linear;
  const TorchActivation* activation = nullptr;  // never null once it was read
};

// Reads the module's config.json and model.safetensors in `path` and packs its weights. `width` is
// that of the vectors that come in. kUnsupported for a weight file of another format and for
// activations and connections that encore has not; kInvalidArgument for other shapes.
Result<Dense> ReadDense(const std::string& path, size_t width, const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_DENSE_H_
