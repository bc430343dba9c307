// SPDX-License-Identifier: Apache-2.0
//
// The head of a sequence classifier: two linear layers on one vector of a sequence's hidden states.
// And that of a classifier of tokens: mostly one, on each hidden state.

#ifndef ENCORE_ENGINE_MODELS_CLASSIFIER_H_
#define ENCORE_ENGINE_MODELS_CLASSIFIER_H_

#include <optional>
#include <string>
#include <vector>

#include "encore/executor.h"
#include "encore/ops.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/tokenizer.h"
#include "engine/models/family.h"
#include "engine/models/model_tensors.h"

namespace encore::inline v0_1::internal {

// Immutable. One without labels is none.
class Classifier {
 public:
  Classifier() = default;
  // None where the folder has none: `architectures` names another task, or names none and a
  // tensor is missing. Where it names a classifier of sequences or of tokens, all tensors must be
  // there. kUnsupported where the folder has one and encore has none of its family.
  static Result<Classifier> Create(const ModelPlan& plan, ModelTensors* tensors,
                                   std::vector<Decision>* decisions);

  const std::vector<std::string>& labels() const { return labels_; }
  bool of_tokens() const { return of_tokens_; }
  OutputRows rows() const { return plan_.rows; }
  // As TextModel::Logits; for a classifier of tokens rows of hidden states.
  Status Apply(ConstView pooled, MutableView logits, const Executor& executor) const;

 private:
  HeadPlan plan_;
  bool of_tokens_ = false;
  std::optional<PackedLinear> dense_;  // where the plan has one
  LoadedNorm norm_;                    // where the plan has one
  std::optional<PackedLinear> out_;
  std::vector<std::string> labels_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_CLASSIFIER_H_
