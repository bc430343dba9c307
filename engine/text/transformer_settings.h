// SPDX-License-Identifier: Apache-2.0
//
// sentence_bert_config.json, which has other names for some models: how the Transformer module is
// called.

#ifndef ENCORE_ENGINE_TEXT_TRANSFORMER_SETTINGS_H_
#define ENCORE_ENGINE_TEXT_TRANSFORMER_SETTINGS_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "encore/status.h"
#include "engine/text/folder_files.h"

namespace encore::inline v0_1::internal {

struct TransformerSettings {
  std::string file;  // "" if the folder has none
  std::optional<size_t> max_seq_length;
  // Texts are made lower case before the tokenizer's own normalizer. false, as in the file, says
  // nothing: the normalizer may do it all the same.
  bool lower_case = false;
  bool classifies = false;  // transformer_task is "sequence-classification"
};

// The file's names, in the order in which sentence-transformers looks for them.
std::span<const std::string_view> TransformerSettingsFiles();

// `path` is the Transformer module's folder. The file's first name that exists counts. Settings
// that change the result and that encore has not are refused: kUnsupported names key and value.
Result<TransformerSettings> ReadTransformerSettings(const std::string& path,
                                                    const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_TRANSFORMER_SETTINGS_H_
