// SPDX-License-Identifier: Apache-2.0
//
// What makes sparse vectors: how logits are pooled, and the static weights of a query's side.

#ifndef ENCORE_ENGINE_TEXT_SPARSE_VECTORS_H_
#define ENCORE_ENGINE_TEXT_SPARSE_VECTORS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/text_encoder.h"
#include "encore/tokenizer.h"
#include "engine/text/call_watch.h"
#include "engine/text/folder_files.h"
#include "engine/text/m3_heads.h"
#include "engine/text/scratch.h"
#include "engine/text/token_store.h"

namespace encore::inline v0_1::internal {

// sentence-transformers' SpladePooling.
struct SpladePooling {
  bool sum = false;    // of the tokens; else their maximum
  bool twice = false;  // log1p(log1p(relu)); else log1p(relu)
};

// Its SparseStaticEmbedding: a text's vector has the weight of each token that is in it.
struct SparseStatic {
  Tokenizer tokenizer;
  Tensor weights;  // F32 [vocabulary]
};

// All that a folder has of it.
struct SparseSide {
  std::optional<SpladePooling> pooling;
  std::optional<SparseStatic> query;  // of the task "query"; without `pooling` of all texts
  std::string default_task;           // with both; empty: none
  // Without these, BGE-M3's, or why its file is of no use.
  std::optional<Result<TokenWeights>> by_token = {};

  bool any() const { return pooling || query || (by_token && by_token->ok()); }
};

struct SparseEntry {
  int32_t index;
  float value;
};
using SparseRows = std::vector<std::vector<SparseEntry>>;

Result<SpladePooling> ReadSpladePooling(const std::string& path, size_t vocab_size,
                                        const FolderReading& reading);
// `vocab_size`: that of the model; nothing: there is none.
Result<SparseStatic> ReadSparseStatic(const std::string& path, std::optional<size_t> vocab_size,
                                      const FolderReading& reading);

// What EncodeSparse takes of the scratch for a batch within these limits.
void AddSparseSizes(const TextEncoder::Impl& impl, const BatchLimits& batch, FloatSizes* sizes);

// By SparseSide::by_token, into rows of no entries.
Status EncodeByTokens(const TextEncoder::Impl& impl, const TextInputs& inputs,
                      const SparseOptions& options, CallWatch* watch, SparseRows* rows,
                      TextCounts* counts);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_SPARSE_VECTORS_H_
