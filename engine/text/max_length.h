// SPDX-License-Identifier: Apache-2.0
//
// How many tokens a text may have, from the files and options that say so.

#ifndef ENCORE_ENGINE_TEXT_MAX_LENGTH_H_
#define ENCORE_ENGINE_TEXT_MAX_LENGTH_H_

#include <cstddef>
#include <optional>

#include "encore/status.h"
#include "engine/text/folder_files.h"
#include "engine/text/transformer_settings.h"

namespace encore::inline v0_1::internal {

struct LengthSources {
  std::optional<size_t> option;             // OpenOptions::max_length
  const TransformerSettings& settings;      // its max_seq_length
  std::optional<size_t> tokenizer_maximum;  // model_max_length of tokenizer_config.json
  size_t model_usual = 0;                   // TextModel::usual_tokens()
  size_t model_maximum = 0;                 // TextModel::max_tokens()
  size_t special_tokens = 0;                // of a text
  bool positions_skip_padding = false;      // TextModel::positions_skip_padding()
};

// The option, else max_seq_length, else the smaller one of the tokenizer's and the model's usual.
// What a file says beyond the model's is capped, and told, and so is that sentence-transformers
// takes more tokens than the cap where some are padding and need no position; an option beyond it
// is kInvalidArgument, and so is what leaves no room for the special tokens.
Result<size_t> ResolveMaxLength(const LengthSources& sources, const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_MAX_LENGTH_H_
