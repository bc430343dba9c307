// SPDX-License-Identifier: Apache-2.0
//
// The table of a model without layers: a vector for each token id, whose mean is a text's vector.
// As sentence-transformers' StaticEmbedding and Model2Vec (github.com/MinishLab/model2vec) store
// it.

#ifndef ENCORE_ENGINE_MODELS_STATIC_TABLE_H_
#define ENCORE_ENGINE_MODELS_STATIC_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "encore/safetensors.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/tokenizer.h"
#include "engine/base/touch_pages.h"
#include "engine/models/table_memory.h"
#include "engine/models/weight_files.h"

namespace encore::inline v0_1::internal {

// Immutable. Until CopyRows the files it was made from must outlive it.
class StaticTable {
 public:
  // "embedding.weight" or "embeddings": [rows, width] in F32, F16, BF16, F64 or I8, an integer
  // being its own value. Where there is "mapping" (I32 or I64, [vocabulary]), id i has row
  // mapping[i], else row i; where there is "weights" ([vocabulary], floats), the row is multiplied
  // by weights[i]. kInvalidArgument names the tensor, what was found and what was wanted.
  static Result<StaticTable> Create(const WeightFiles& files, std::vector<Decision>* decisions);

  // As Embeddings'.
  Status CopyRows() { return CopyTable(&rows_, &own_); }
  size_t table_bytes() const {
    return own_.size_bytes() + weights_.size_bytes() + mapping_.size() * sizeof(uint32_t);
  }
  void Touch() const { ReadPages(BytesOf(rows_)); }

  size_t width() const { return rows_.dim(1); }
  bool shares_rows() const { return !mapping_.empty(); }
  size_t vocab_size() const { return mapping_.empty() ? rows_.dim(0) : mapping_.size(); }

  // out [width] = sum of the ids' vectors / ids.size(), zeros without ids. Every id is below
  // vocab_size(). Sums are f32 over 32 tokens, and f64 over these.
  void Mean(std::span<const int32_t> ids, float* out) const;
  // Asks for the rows of ids whose mean is wanted next.
  void Prefetch(std::span<const int32_t> ids) const;

 private:
  StaticTable() = default;
  const std::byte* RowOf(int32_t id) const;
  template <typename T>
  void MeanOf(std::span<const int32_t> ids, float* out) const;

  WeightView rows_;
  Tensor own_;                     // what rows_ views, unless that is a file's
  std::vector<uint32_t> mapping_;  // empty: id i has row i
  Tensor weights_;                 // F32 [vocab_size()]; without elements: 1
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_STATIC_TABLE_H_
