// SPDX-License-Identifier: Apache-2.0
//
// A folder's tokenizer as the modules' files want it: without the weights, for those who want
// tokens alone.

#ifndef ENCORE_ENGINE_TEXT_FOLDER_TOKENIZER_H_
#define ENCORE_ENGINE_TEXT_FOLDER_TOKENIZER_H_

#include <cstddef>
#include <string>

#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/text/folder_files.h"

namespace encore::inline v0_1::internal {

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
