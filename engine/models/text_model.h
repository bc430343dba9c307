// SPDX-License-Identifier: Apache-2.0
//
// A text model from its folder: token ids to hidden states, and a classification head where the
// folder has one. Or a table of static embeddings, which has no layers.

#ifndef ENCORE_ENGINE_MODELS_TEXT_MODEL_H_
#define ENCORE_ENGINE_MODELS_TEXT_MODEL_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/encoder.h"
#include "encore/safetensors.h"
#include "encore/status.h"
#include "encore/text_encoder.h"
#include "encore/tokenizer.h"
#include "engine/io/folder.h"
#include "engine/models/classifier.h"
#include "engine/models/embeddings.h"
#include "engine/models/language_head.h"
#include "engine/models/static_table.h"
#include "engine/models/weight_files.h"

namespace encore::inline v0_1::internal {

// What a folder's modules want of its model.
struct ModelExtras {
  std::string_view read_later = {};  // a tensor that the caller reads: it is not listed as ignored
  // In place of a classifier's head.
  std::optional<LogitScore> score = {};
  bool score_may_be_missing = false;  // where the model cannot have it, there is no head
};

// Immutable, thread-safe.
class TextModel {
 public:
  // Reads config.json and model.safetensors (or its shards). Of the options, those of the model
  // count: precision is the encoder's, embeddings and the head are f32. Appends what was decided.
  // Embedding tables stay mapped, all other tensors are packed. kNotFound, kUnsupported,
  // kCorruptData, kInvalidArgument name the file, the key or tensor, what was found and what was
  // wanted; kIo; kOutOfMemory.
  static Result<TextModel> Open(const Folder& folder, const OpenOptions& options,
                                std::vector<Decision>* decisions, const ModelExtras& extras = {});
  // The same of a folder of static embeddings: reads model.safetensors alone.
  static Result<TextModel> OpenStatic(const Folder& folder, const OpenOptions& options,
                                      std::vector<Decision>* decisions);
  // A vocabulary alone: checks ids and computes nothing.
  static TextModel OfVocabulary(size_t vocab_size) {
    return TextModel("static", {}, Embeddings::WithoutTables(vocab_size));
  }

  std::string_view family() const { return family_; }  // model_type as config.json has it
  size_t d_model() const {
    if (encoder_) return encoder_->config().d_model;
    return table_ ? table_->width() : 0;
  }
  // Whether a linear layer follows the encoder, which makes hidden states of another width.
  bool has_projection() const { return projection_.has_value(); }
  // Columns of hidden states: d_model, or the projection's.
  size_t hidden_width() const { return projection_ ? projection_->out_features() : d_model(); }
  size_t vocab_size() const { return spec().vocab_size; }  // rows of the embedding table
  // Type ids are below this; 0: the family has none.
  size_t type_vocab_size() const { return spec().type_vocab_size; }
  // Tokens a sequence may have, special ones included.
  size_t max_tokens() const { return spec().max_tokens(); }
  // What a text is cut to unless a caller or a file wants more.
  size_t usual_tokens() const { return spec().usual_tokens(); }
  // The model makes vectors of texts itself, as those of texts and images do: the last row of
  // TokensRead(ids), in hidden_width() columns.
  bool pools_text() const { return pooling_.token != TextPooling::kNone; }
  // How many of a text's tokens count for that vector: no later one is seen by its row. All of them
  // in other models.
  size_t TokensRead(std::span<const int32_t> ids) const;
  // Texts are padded to max_tokens(), as the model was trained.
  bool pads() const { return pads_; }
  // Whether tokens of pad_token_id have one position that is no other token's, and count for none.
  bool positions_skip_padding() const { return spec().position_rule == PositionRule::kFromPadding; }
  // Rows of a table of static embeddings that has one a token; nothing where tokens share rows.
  std::optional<size_t> table_rows_of_tokens() const {
    return table_ && !table_->shares_rows() ? std::optional(table_->vocab_size()) : std::nullopt;
  }
  bool is_static() const { return !encoder_; }          // one of a vocabulary alone too
  const Encoder& encoder() const { return *encoder_; }  // unless is_static()

  // Every id is in the table, every type id too (a family without types does not read them), every
  // sequence has a token and none is longer than max_tokens(). kInvalidArgument names the sequence,
  // the place, what was found and what was wanted.
  Status CheckTokens(const TokenBatch& batch) const { return embeddings_.Check(batch); }

  // Of static embeddings: means [sequences, d_model], contiguous. Zeros for a sequence without
  // tokens. The batch was checked otherwise. Rows are shared among the executor's threads. kIo as
  // Embed.
  Status Means(const TokenBatch& batch, float* means, const Executor& executor) const;

  // ---- Unless is_static():
  // The sum of embeddings, normalized (and projected, where the family does): x [tokens, d_model],
  // contiguous rows. The batch was checked. Rows are shared among the executor's threads. kIo if a
  // file of the weights was changed since it was opened.
  Status Embed(const TokenBatch& batch, MutableView x, BatchScratch* scratch,
               const Executor& executor) const;

  // hidden = projection(encoder(x)), or encoder(x) where there is none: [tokens, hidden_width()]
  // for kAll, else [sequences, hidden_width()]. x is overwritten; without a projection hidden may
  // be x for kAll. The workspace is as Encoder::WorkspaceBytes says.
  Status Forward(const TokenBatch& batch, OutputRows rows, MutableView x, MutableView hidden,
                 const Workspace& workspace, BatchScratch* scratch, const Executor& executor,
                 const Taps& taps = {}) const;

  // ---- Memory, in bytes.
  size_t mapped_bytes() const;
  size_t packed_bytes() const;  // in own memory, as the next one
  size_t table_bytes() const;
  // Of BatchScratch and of the encoder's workspace, for batches within these limits.
  struct ScratchBytes {
    size_t workspace = 0, narrow = 0, states = 0;
    size_t positions = 0, factors = 0;  // entries
  };
  Result<ScratchBytes> ScratchOf(const BatchLimits& limits, int threads) const;
  // Reads all pages of the tables, and the files for their checksums: from here on a touch of one
  // does no harm. kIo as Embed.
  Status ReadFiles(const Executor& executor) const;

  // Of a masked language model, with OpenOptions::language_head; else null.
  const LanguageHead* language_head() const { return language_ ? &*language_ : nullptr; }

  // ---- The head of a classifier, of sequences unless it says otherwise.
  bool has_head() const { return !labels().empty() && !labels_tokens(); }
  // The head labels each token; Logits takes hidden states then.
  bool labels_tokens() const { return head_.of_tokens(); }
  const std::vector<std::string>& labels() const { return head_.labels(); }  // id2label, by id
  const Result<ProblemType>& problem_type() const { return problem_type_; }
  // The row of a sequence's hidden states that the head reads, or with kAll their mean. Without a
  // head: the first.
  OutputRows head_rows() const { return head_.rows(); }
  // With kAll: not of the rows' mean but of each row, and the mean of their logits counts.
  bool head_means_logits() const { return head_.mean_of_logits(); }
  // The rows of a batch that have what the head reads: head_rows(), but kAll where that is kLast
  // and a sequence ends with padding, whose row the head does not read.
  OutputRows head_rows(const TokenBatch& batch) const { return head_.RowsOf(batch); }
  // With kLast: which of a sequence's tokens the head reads.
  size_t head_place(std::span<const int32_t> ids) const { return head_.PlaceOf(ids); }
  // pooled [sequences, d_model]: what the head reads, before any pooler; logits [sequences,
  // labels]. Allocates.
  Status Logits(ConstView pooled, MutableView logits, const Executor& executor) const {
    return head_.Apply(pooled, logits, executor);
  }

 private:
  TextModel(std::string family, WeightFiles files, Embeddings embeddings)
      : family_(std::move(family)), files_(std::move(files)), embeddings_(std::move(embeddings)) {}
  const EmbeddingSpec& spec() const { return embeddings_.spec(); }
  static Batch PackedBatch(const TokenBatch& batch);

  std::string family_;
  Status KeepTables(FileMemory memory);

  WeightFiles files_;  // keeps alive what the embeddings view; none where they have own memory
  Embeddings embeddings_;
  std::optional<StaticTable> table_;
  std::optional<Encoder> encoder_;  // where there is no table
  std::optional<PackedLinear> projection_;
  TextPoolingSpec pooling_;
  bool pads_ = false;
  Classifier head_;
  Result<ProblemType> problem_type_ = ProblemType::kUnnamed;
  std::optional<LanguageHead> language_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_TEXT_MODEL_H_
