// SPDX-License-Identifier: Apache-2.0
//
// MultiVectorEncoder: a model of late interaction (ColBERT) from its folder, from texts to a vector
// for each token, and to scores. Part of the library encore::text.
//
//   const auto model = encore::MultiVectorEncoder::Open("GTE-ModernColBERT-v1");
//   const auto query = model->EncodeQueries({"Which planet has rings?"});
//   const auto documents = model->EncodeDocuments({"Saturn has rings.", "Mars is red."});
//   float scores[2];
//   model->Similarity(query->rows(), documents->rows(), encore::MutableView(scores, {1, 2}));
//
// Folders are those of sentence-transformers' MultiVectorEncoder, of PyLate and of Stanford's
// ColBERT; what sentence-transformers 6.2 computes from the same folder is the reference. And
// BGE-M3's, by its colbert_linear.pt (arXiv:2402.03216): a vector for each token but the first, and
// the mean of MaxSim, as FlagEmbedding. Bits are promised as in text_encoder.h.

#ifndef ENCORE_MULTI_VECTOR_ENCODER_H_
#define ENCORE_MULTI_VECTOR_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "encore/encoder.h"
#include "encore/export.h"
#include "encore/max_sim.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/text_encoder.h"
#include "encore/tokenizer.h"

namespace encore::inline v0_1 {

// The texts' role: it decides their prompt, the tokens to which they are cut, and which of their
// tokens have a vector.
enum class TextTask : uint8_t { kNone, kQuery, kDocument };

struct MultiVectors {
  Tensor vectors;                  // F32 [rows, dimensions], text after text
  std::vector<size_t> row_starts;  // [texts + 1]: the first row of each text, and the end
  TextCounts counts;

  RowGroups rows() const& { return {vectors.View<float>(), row_starts}; }
  RowGroups rows() const&& = delete;
};

// A model with its tokenizer. Immutable, thread-safe, shared by copying; methods, stacks, memory
// and fork() as TextEncoder's.
class ENCORE_API MultiVectorEncoder {
 public:
  // As TextEncoder::Open. kUnsupported for a folder of another class. OpenOptions::max_length takes
  // the place of query_length and document_length, not of a query expansion's length; pooling must
  // be empty.
  static Result<MultiVectorEncoder> Open(const std::string& folder,
                                         const OpenOptions& options = {});

  // Queries: with the prompt "query", cut to max_length(kQuery), or expanded to as many tokens as
  // the folder says: by tokens that see the query, and that the query does not see unless the
  // folder says so (arXiv:2004.12832).
  // Documents: with the prompt "document", cut to max_length(kDocument), and without rows for
  // tokens of the folder's skip list.
  // Encode: with the folder's default prompt, and without rows for tokens of the skip list of
  // documents.
  //
  // EncodeOptions::prompt and prompt_name replace the prompts, max_length the lengths (no other
  // than the expansion's where queries are always expanded to that); `dimensions` must be 0:
  // kInvalidArgument.
  Result<MultiVectors> EncodeQueries(Texts texts, const EncodeOptions& options = {}) const {
    return Encode(texts, options, TextTask::kQuery);
  }
  Result<MultiVectors> EncodeDocuments(Texts texts, const EncodeOptions& options = {}) const {
    return Encode(texts, options, TextTask::kDocument);
  }
  Result<MultiVectors> Encode(Texts texts, const EncodeOptions& options = {},
                              TextTask task = TextTask::kNone) const;

  // scores [queries, documents] by MaxSim (max_sim.h), or its mean where the folder says
  // "meanmaxsim".
  Status Similarity(const RowGroups& queries, const RowGroups& documents, MutableView scores,
                    const Executor& executor = {}) const;
  Status Similarity(const RowGroups& queries, const StoredRowGroups& documents, MutableView scores,
                    const Executor& executor = {}) const;
  bool mean_similarity() const;

  Status Prepare(size_t max_tokens, const Executor& executor = {},
                 Scratch* scratch = nullptr) const;
  size_t WorkspaceBytes(size_t tokens, int threads) const;
  void TrimMemory() const;
  ModelMemory Memory() const;  // these four as TextEncoder's

  size_t dimensions() const;  // of a vector
  // Tokens to which texts are cut; queries may be expanded to more.
  size_t max_length(TextTask task) const;
  // Whether the folder has a length for this task; else it is that of texts without one.
  bool has_own_length(TextTask task) const;
  const Tokenizer& tokenizer() const&;
  const Tokenizer& tokenizer() const&& = delete;
  const Encoder& encoder() const&;
  const Encoder& encoder() const&& = delete;
  // Names and texts of the folder's prompts, prefixes of queries and documents included.
  const std::vector<std::pair<std::string, std::string>>& prompts() const&;
  const std::vector<std::pair<std::string, std::string>>& prompts() const&& = delete;
  // As TextEncoder's.
  const std::vector<Decision>& Describe() const&;
  const std::vector<Decision>& Describe() const&& = delete;

  struct Impl;

 private:
  explicit MultiVectorEncoder(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace encore

#endif  // ENCORE_MULTI_VECTOR_ENCODER_H_
