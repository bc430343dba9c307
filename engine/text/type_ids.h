// SPDX-License-Identifier: Apache-2.0
//
// Whether the model is given the tokenizer's type ids.

#ifndef ENCORE_ENGINE_TEXT_TYPE_IDS_H_
#define ENCORE_ENGINE_TEXT_TYPE_IDS_H_

#include <cstddef>
#include <string>

#include "encore/status.h"
#include "engine/text/folder_files.h"

namespace encore::inline v0_1::internal {

// False where the model has no table for them, where model_input_names of tokenizer_config.json
// leaves token_type_ids out, and without that key where the tokenizer's class does
// (tokenizer_class.h). All are 0 then, those of a pair's second text too. `path` is the Transformer
// module's folder within the model's, and `transformer` the same, opened.
Result<bool> ReadUsesTypeIds(const Folder& transformer, const std::string& path,
                             size_t type_vocab_size, const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_TYPE_IDS_H_
