// SPDX-License-Identifier: Apache-2.0
//
// From token ids to the encoder's input: rows of embedding tables in the mapped file, their
// sum, its norm, and a projection where the family has one. A table may be of integers (`encore
// convert --embeddings int8`): I8 [rows, width], and beside it NAME.weight_scale, F32 [rows]; an
// element is the integer times its row's scale.

#ifndef ENCORE_ENGINE_MODELS_EMBEDDINGS_H_
#define ENCORE_ENGINE_MODELS_EMBEDDINGS_H_

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
#include "engine/base/float_buffer.h"
#include "engine/models/family.h"
#include "engine/models/model_tensors.h"
#include "engine/models/table_memory.h"
#include "engine/models/task_adapter.h"

namespace encore::inline v0_1::internal {

// The names of a spec's tables in the base model, with ".weight".
std::vector<std::string> EmbeddingTables(const EmbeddingSpec& spec);

// Packed sequences of token ids; the caller's memory.
struct TokenBatch {
  std::span<const int32_t> ids;        // [tokens]
  std::span<const uint8_t> type_ids;   // [tokens], or empty: all 0
  std::span<const size_t> seq_starts;  // as Batch's; every sequence has a token
  // [tokens], or empty: 1 for a token that no token sees, not even itself; else 0.
  std::span<const size_t> unseen = {};
};

// What a batch works in beside the encoder's workspace; kept for the next one.
struct BatchScratch {
  std::vector<uint32_t> positions;  // [tokens]: rows of the table of positions
  std::vector<float> factors;       // [tokens]: of words
  FloatBuffer narrow;               // [tokens, width]: sums before a projection
  FloatBuffer states;               // [sequences, d_model]: likewise, of hidden states

  size_t size_bytes() const {
    return positions.capacity() * sizeof(uint32_t) + factors.capacity() * sizeof(float) +
           narrow.size_bytes() + states.size_bytes();
  }
};

struct EmbeddingTable {
  WeightView rows;        // [rows, width]; empty where the family has none
  Tensor own;             // what rows view, unless that is a file's
  Tensor scales;          // F32 [rows], where rows are I8
  LowRankRows more = {};  // what an adapter adds

  bool is_int8() const { return scales.size_bytes() > 0; }
};

// Views the table, which may be I8 with a scale for each row. kInvalidArgument as ModelTensors.
Status ViewTable(const std::string& name, const Shape& shape, ModelTensors* tensors,
                 EmbeddingTable* table);
// A row in f32 (f64 to nearest), to out [width].
void ReadTableRow(const EmbeddingTable& table, size_t row, float* out);

// Immutable. Until CopyTables the files of the tensors it was made from must outlive it.
class Embeddings {
 public:
  static Result<Embeddings> Create(const EmbeddingSpec& spec, size_t d_model,
                                   ModelTensors* tensors);

  // Checks ids of a vocabulary of so many, and has nothing to apply.
  static Embeddings WithoutTables(size_t vocab_size);

  // From here on its tables are in own memory. kOutOfMemory.
  Status CopyTables();

  const EmbeddingSpec& spec() const { return spec_; }
  // Whether one of the tables is I8.
  bool has_int8() const;

  // As TextModel::CheckTokens and TextModel::Embed.
  Status Check(const TokenBatch& batch) const;
  Status Apply(const TokenBatch& batch, MutableView x, BatchScratch* scratch,
               const Executor& executor) const;

  // Bytes of own memory, of tables and of a product.
  size_t table_bytes() const;
  size_t packed_bytes() const { return PackedBytes(projection_); }
  // Reads all pages of the tables.
  void Touch() const;

 private:
  Embeddings() = default;

  EmbeddingSpec spec_;
  EmbeddingTable words_, types_, positions_, tasks_;
  LoadedNorm norm_;                         // where the spec has one
  std::optional<PackedLinear> projection_;  // width to d_model
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_EMBEDDINGS_H_
