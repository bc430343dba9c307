// SPDX-License-Identifier: Apache-2.0
//
// The head of a masked language model: from a token's hidden state to a logit for each token of the
// vocabulary, a block of the vocabulary at a time, as nobody has memory for all logits of a batch.

#ifndef ENCORE_ENGINE_MODELS_LANGUAGE_HEAD_H_
#define ENCORE_ENGINE_MODELS_LANGUAGE_HEAD_H_

#include <cstddef>
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
#include "engine/models/table_memory.h"

namespace encore::inline v0_1::internal {

// logits = E norm(activation(dense(x))) + bias, as LanguageHeadSpec has it: E is the table of words
// or a matrix of the head's own. Immutable.
class LanguageHead {
 public:
  // kUnsupported where encore has none of the family; kInvalidArgument for tensors that are missing
  // or do not fit.
  static Result<LanguageHead> Create(const ModelSpec& spec, ModelTensors* tensors,
                                     std::vector<Decision>* decisions);

  size_t vocab_size() const { return vocab_size_; }
  // All but the last product: hidden [rows, d_model] to [rows, width], both contiguous.
  size_t width() const { return width_; }
  Status Transform(ConstView hidden, MutableView transformed, const Executor& executor) const;
  // Tokens of the vocabulary in a block, but for the last one, which may have fewer.
  static constexpr size_t kBlock = 256;
  size_t blocks() const { return blocks_.size(); }
  size_t block_size(size_t block) const { return blocks_[block].out_features(); }
  // logits [rows, block_size(block)] of transformed [rows, width], contiguous rows. Inline.
  Status Block(size_t block, ConstView transformed, MutableView logits) const {
    return blocks_[block].Apply(transformed, logits);
  }

  size_t packed_bytes() const {
    return PackedBytes(dense_) + PackedBytes(second_) + vocab_size_ * width_ * sizeof(float);
  }

 private:
  LanguageHead() = default;
  Status ReadTransform(const ModelSpec& model, const std::string& norm, ModelTensors* tensors);
  Status TransformRows(ConstView hidden, MutableView transformed) const;

  size_t vocab_size_ = 0;
  size_t width_ = 0;
  std::optional<PackedLinear> dense_;   // nothing: the last product alone
  std::optional<PackedLinear> second_;  // where the spec has one
  const ActivationRow* activation_ = nullptr;
  std::optional<LoadedNorm> norm_;  // where the spec has one
  std::vector<PackedLinear> blocks_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_LANGUAGE_HEAD_H_
