// SPDX-License-Identifier: Apache-2.0
//
// config.json as a plan of the model.

#ifndef ENCORE_ENGINE_MODELS_MODEL_CONFIG_H_
#define ENCORE_ENGINE_MODELS_MODEL_CONFIG_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/io/folder.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {

inline constexpr const char kConfigFile[] = "config.json";

struct ModelConfig {
  std::string model_type;
  ModelPlan plan;
  std::vector<std::string> architectures;  // class names of transformers; may be empty
  // id2label, by id; empty where there is none. An error matters to a head only.
  Result<std::vector<std::string>> labels = std::vector<std::string>();
  std::optional<size_t> num_labels;  // where config.json has the key
};

// kNotFound without a config.json; kUnsupported for a family that encore has not, a folder that is
// an adapter's, and values that encore does not compute; kCorruptData; kInvalidArgument. Appends
// what was decided.
Result<ModelConfig> ReadModelConfig(const Folder& folder, bool ignore_unknown_keys,
                                    std::vector<Decision>* decisions);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_MODEL_CONFIG_H_
