// SPDX-License-Identifier: Apache-2.0
//
// Opens the tokenizer of a folder without its weights.

#include "engine/text/folder_tokenizer.h"

#include <limits>
#include <utility>

#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/models/model_config.h"

namespace encore::inline v0_1::internal {
namespace {

struct ModelLengths {
  size_t usual = 0, maximum = 0;
};

// Of the model's positions; the largest numbers where they are not known.
Result<ModelLengths> ReadLengths(const Folder& folder, bool ignore_unknown_keys) {
  std::vector<Decision> decisions;
  const Result<ModelConfig> config = ReadModelConfig(folder, ignore_unknown_keys, &decisions);
  if (config.ok()) {
    const EmbeddingPlan& plan = config->plan.embeddings;
    return ModelLengths{plan.usual_tokens(), plan.max_tokens()};
  }
  const ErrorCode code = config.status().code();
  if (code == ErrorCode::kNotFound || code == ErrorCode::kUnsupported) {
    constexpr size_t kMost = std::numeric_limits<size_t>::max();
    return ModelLengths{kMost, kMost};
  }
  return config.status();
}

}  // namespace

Result<Tokenizer> OpenTokenizer(const TransformerFolder& transformer) {
  return Tokenizer::Open(transformer.folder.path(), {.lowercase = transformer.settings.lower_case});
}

Result<FolderTokenizer> OpenFolderTokenizer(const std::string& path, bool ignore_unknown_keys) {
  return Guarded("the tokenizer", [&]() -> Result<FolderTokenizer> {
    ENCORE_ASSIGN_OR_RETURN(const Folder folder, Folder::Open(path));
    std::vector<Decision> decisions;
    const FolderReading reading{folder, ignore_unknown_keys, decisions};
    ENCORE_ASSIGN_OR_RETURN(const TransformerFolder transformer, FindTransformer(reading));
    ENCORE_ASSIGN_OR_RETURN(Tokenizer tokenizer, OpenTokenizer(transformer));
    ENCORE_ASSIGN_OR_RETURN(const ModelLengths lengths,
                            ReadLengths(transformer.folder, ignore_unknown_keys));
    ENCORE_ASSIGN_OR_RETURN(const size_t length,
                            ChooseMaxLength({.option = {},
                                             .settings = transformer.settings,
                                             .tokenizer_maximum = tokenizer.model_max_length(),
                                             .model_usual = lengths.usual,
                                             .model_maximum = lengths.maximum},
                                            reading));
    const bool is_known = length < std::numeric_limits<size_t>::max();
    ENCORE_ASSIGN_OR_RETURN(const bool type_ids, ReadUsesTypeIds(transformer, 1, reading));
    return FolderTokenizer{std::move(tokenizer), is_known ? length : 0, type_ids};
  });
}

}  // namespace encore::internal
