// SPDX-License-Identifier: Apache-2.0
//
// Where a folder has its transformer, and its tokenizer as the modules' files want it: without the
// weights, for those who want tokens alone.

#ifndef ENCORE_ENGINE_TEXT_FOLDER_TOKENIZER_H_
#define ENCORE_ENGINE_TEXT_FOLDER_TOKENIZER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/text/folder_files.h"
#include "engine/text/module_list.h"
#include "engine/text/transformer_settings.h"

namespace encore::inline v0_1::internal {

struct TransformerFolder {
  std::optional<std::vector<ModuleEntry>> modules;  // of modules.json
  std::string path;                                 // of the transformer, within the model's folder
  Folder folder;                                    // the same, opened
  TransformerSettings settings;
};

// Reads modules.json and the transformer's settings; these do not count without modules.json.
Result<TransformerFolder> FindTransformer(const FolderReading& reading);

Result<Tokenizer> OpenTokenizer(const TransformerFolder& transformer);

// The tokenizer of a model's folder, or of a folder that has nothing but one. A model of a family
// that encore has not is no error.
struct FolderTokenizer {
  Tokenizer tokenizer;
  size_t max_length = 0;  // tokens that a text may have; 0: no limit is known
  bool type_ids = false;  // the model is given type ids, as far as the tokenizer's files say
};
Result<FolderTokenizer> OpenFolderTokenizer(const std::string& folder, bool ignore_unknown_keys);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_FOLDER_TOKENIZER_H_
