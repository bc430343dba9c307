// SPDX-License-Identifier: Apache-2.0
//
// The head of a sequence classifier: two linear layers on the hidden state of the first token. Not
// here: what becomes of its logits (engine/text).

#ifndef ENCORE_ENGINE_MODELS_CLASSIFIER_H_
#define ENCORE_ENGINE_MODELS_CLASSIFIER_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "encore/executor.h"
#include "encore/ops.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/tokenizer.h"
#include "engine/models/model_config.h"
#include "engine/models/model_tensors.h"

namespace encore::internal {

// Immutable.
class Classifier {
 public:
  // Nothing where the folder has none: `architectures` names another task, or names none and a
  // tensor is missing. Where it names a sequence classifier all tensors must be there.
  static Result<std::optional<Classifier>> Create(const ModelConfig& config, ModelTensors* tensors,
                                                  std::vector<Decision>* decisions);

  const std::vector<std::string>& labels() const { return labels_; }
  // As TextModel::Logits.
  Status Apply(ConstView first, MutableView logits, const Executor& executor) const;

 private:
  Classifier(PackedLinear dense, HeadPlan::Activation activation, PackedLinear out,
             std::vector<std::string> labels)
      : dense_(std::move(dense)),
        activation_(activation),
        out_(std::move(out)),
        labels_(std::move(labels)) {}

  PackedLinear dense_;
  HeadPlan::Activation activation_;
  PackedLinear out_;
  std::vector<std::string> labels_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_CLASSIFIER_H_
