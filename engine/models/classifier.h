// SPDX-License-Identifier: Apache-2.0
//
// The head of a classifier of sequences, or of pictures: linear layers on one vector of the hidden
// states. And that of a classifier of tokens: mostly one, on each hidden state.

#ifndef ENCORE_ENGINE_MODELS_CLASSIFIER_H_
#define ENCORE_ENGINE_MODELS_CLASSIFIER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "encore/executor.h"
#include "encore/ops.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/tokenizer.h"
#include "engine/models/embeddings.h"
#include "engine/models/family.h"
#include "engine/models/model_tensors.h"

namespace encore::inline v0_1::internal {

// A score of a causal language model, as sentence-transformers' LogitScore has it: the logit of one
// token of the vocabulary after a text, less that of another.
struct LogitScore {
  size_t true_token = 0;
  std::optional<size_t> false_token = {};
};

// Immutable. One without labels is none.
class Classifier {
 public:
  Classifier() = default;
  // None where the folder has none: `architectures` names another task, or names none and a
  // tensor is missing. Where it names a classifier of sequences, tokens or pictures, all tensors
  // must be there. kUnsupported if encore does not support the family's head.
  static Result<Classifier> Create(const ModelSpec& spec, ModelTensors* tensors,
                                   std::vector<Decision>* decisions);

  // One label, of the language model's last matrix: its own, or the table of words. kUnsupported
  // for families without such a head and for final_logit_softcapping; kInvalidArgument.
  static Result<Classifier> OfLogits(const ModelSpec& spec, const LogitScore& score,
                                     ModelTensors* tensors, std::vector<Decision>* decisions);

  const std::vector<std::string>& labels() const { return labels_; }
  bool of_tokens() const { return of_tokens_; }
  OutputRows rows() const { return spec_.rows; }
  bool mean_of_logits() const { return spec_.mean_of_logits; }
  PictureRows of_picture() const { return spec_.of_picture; }
  // Columns of what the head reads, where there is one.
  size_t width() const { return (dense_ ? dense_ : out_)->in_features(); }
  // As TextModel's head_rows and head_place.
  OutputRows RowsOf(const TokenBatch& batch) const;
  size_t PlaceOf(std::span<const int32_t> ids) const;
  // As TextModel::Logits; for a classifier of tokens rows of hidden states.
  Status Apply(ConstView pooled, MutableView logits, const Executor& executor) const;

  size_t packed_bytes() const { return PackedBytes(dense_) + PackedBytes(out_); }

 private:
  // The last layer, and what follows it.
  Status ApplyLast(ConstView inner, MutableView logits, const Executor& executor) const;

  HeadSpec spec_;
  bool of_tokens_ = false;
  std::optional<PackedLinear> dense_;  // where the spec has one
  LoadedNorm norm_;                    // where the spec has one
  std::optional<PackedLinear> out_;
  std::vector<std::string> labels_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_CLASSIFIER_H_
