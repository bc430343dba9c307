// SPDX-License-Identifier: Apache-2.0
//
// A text model from its folder: token ids to hidden states, and a classification head where the
// folder has one.

#ifndef ENCORE_ENGINE_MODELS_TEXT_MODEL_H_
#define ENCORE_ENGINE_MODELS_TEXT_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/io/folder.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {

// Packed sequences of token ids; the caller's memory.
struct TokenBatch {
  std::span<const int32_t> ids;        // [tokens]
  std::span<const uint8_t> type_ids;   // [tokens], or empty: all 0
  std::span<const size_t> seq_starts;  // as Batch's; every sequence has a token
};

// What the caller of Open knows or wants.
struct ModelOptions {
  bool ignore_unknown_keys = false;
  Executor executor = {};
  // As OpenOptions. Of the encoder; embeddings and the head are f32.
  std::optional<Precision> precision = {};
  std::vector<MatrixOfLayer> keep = {};
  bool amx_bf16 = false;
  FileMemory weights = FileMemory::kMapped;
};

// Immutable, thread-safe; copies share it.
class TextModel {
 public:
  // Reads config.json and model.safetensors (or its shards). Appends what was decided. Embedding
  // tables stay mapped from the file, the rest is packed. kNotFound, kUnsupported, kCorruptData,
  // kInvalidArgument name the file, the key or tensor, what was found and what was wanted; kIo;
  // kOutOfMemory.
  static Result<TextModel> Open(const Folder& folder, const ModelOptions& options,
                                std::vector<Decision>* decisions);

  std::string_view family() const;  // model_type as config.json has it
  size_t d_model() const;
  size_t vocab_size() const;       // rows of the embedding table
  size_t type_vocab_size() const;  // type ids are below this; 0: the family has none
  // Tokens a sequence may have, special ones included.
  size_t max_tokens() const;
  // What a text is cut to unless a caller or a file wants more.
  size_t usual_tokens() const;
  // Whether tokens of pad_token_id have one position that is no other token's, and count for none.
  bool positions_skip_padding() const;
  const Encoder& encoder() const;

  // Every id is in the table, every type id too (a family without types does not read them), every
  // sequence has a token and none is longer than max_tokens(). kInvalidArgument names the sequence,
  // the place, what was found and what was wanted.
  Status CheckTokens(const TokenBatch& batch) const;

  // The sum of embeddings, normalized (and projected, where the family does): x [tokens, d_model],
  // contiguous rows. The batch was checked. Rows are shared among the executor's threads. kIo if a
  // file of the weights was changed since it was opened.
  Status Embed(const TokenBatch& batch, MutableView x, const Executor& executor) const;

  // hidden = encoder(x): [tokens, d_model] for kAll, else [sequences, d_model]. x is overwritten;
  // hidden may be x for kAll. Memory as Encoder::WorkspaceBytes says.
  Status Forward(const TokenBatch& batch, OutputRows rows, MutableView x, MutableView hidden,
                 const Workspace& workspace, const Executor& executor, const Taps& taps = {}) const;

  // ---- The head of a sequence classifier.
  bool has_head() const;
  const std::vector<std::string>& labels() const;  // id2label, by id
  // The row of a sequence's hidden states that the head reads, or with kAll their mean. Without a
  // head: the first.
  OutputRows head_rows() const;
  // pooled [sequences, d_model]: what the head reads, before any pooler; logits [sequences,
  // labels]. Allocates.
  Status Logits(ConstView pooled, MutableView logits, const Executor& executor) const;

  struct Impl;

 private:
  explicit TextModel(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_TEXT_MODEL_H_
