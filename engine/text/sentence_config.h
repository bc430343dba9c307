// SPDX-License-Identifier: Apache-2.0
//
// config_sentence_transformers.json: prompts, columns, what the model is for.

#ifndef ENCORE_ENGINE_TEXT_SENTENCE_CONFIG_H_
#define ENCORE_ENGINE_TEXT_SENTENCE_CONFIG_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/status.h"
#include "engine/text/folder_files.h"

namespace encore::inline v0_1::internal {

inline constexpr std::string_view kSentenceConfigFile = "config_sentence_transformers.json";

struct SentenceConfig {
  std::vector<std::pair<std::string, std::string>> prompts;  // names and texts, in the file's order
  std::optional<std::string> default_prompt_name;            // one of them
  std::optional<size_t> truncate_dim;
  std::optional<std::string> activation_fn;  // of a cross-encoder's scores

  // The text of this name, or null.
  const std::string* FindPrompt(std::string_view name) const;
};

// As sentence-transformers, which reads the file only beside modules.json: `has_modules` false
// ignores it, and says so. kUnsupported for models that give no dense vectors.
Result<SentenceConfig> ReadSentenceConfig(bool has_modules, const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_SENTENCE_CONFIG_H_
