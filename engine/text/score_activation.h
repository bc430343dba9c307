// SPDX-License-Identifier: Apache-2.0
//
// What a folder says of the function between a classification head and its scores.

#ifndef ENCORE_ENGINE_TEXT_SCORE_ACTIVATION_H_
#define ENCORE_ENGINE_TEXT_SCORE_ACTIVATION_H_

#include <cstddef>
#include <string>

#include "encore/status.h"
#include "engine/text/folder_files.h"
#include "engine/text/sentence_config.h"
#include "engine/text/torch_activation.h"

namespace encore::inline v0_1::internal {

// As sentence-transformers' CrossEncoder: activation_fn of config_sentence_transformers.json, else
// of config.json's sentence_transformers, else its sbert_ce_default_activation_function, else the
// sigmoid for one label and the identity for more. kUnsupported for functions that are not in
// torch_activation.h. `path` is the
// Transformer module's folder.
Result<const TorchActivation*> ReadScoreActivation(const std::string& path,
                                                   const SentenceConfig& config, size_t labels,
                                                   const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_SCORE_ACTIVATION_H_
