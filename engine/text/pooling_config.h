// SPDX-License-Identifier: Apache-2.0
//
// 1_Pooling/config.json: which pooling modes, in which order.

#ifndef ENCORE_ENGINE_TEXT_POOLING_CONFIG_H_
#define ENCORE_ENGINE_TEXT_POOLING_CONFIG_H_

#include <cstddef>
#include <string>
#include <vector>

#include "encore/status.h"
#include "encore/text_encoder.h"
#include "engine/text/folder_files.h"

namespace encore::inline v0_1::internal {

// The modes in the order in which their vectors are concatenated: booleans in PoolingMode's order,
// a list in its own. `path` is the Pooling module's folder. kInvalidArgument if the file's width is
// not d_model; kUnsupported where prompts are left out of the pooling.
Result<std::vector<PoolingMode>> ReadPoolingConfig(const std::string& path, size_t d_model,
                                                   const FolderReading& reading);

// "mean", "cls + max".
std::string PoolingText(const std::vector<PoolingMode>& modes);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_POOLING_CONFIG_H_
