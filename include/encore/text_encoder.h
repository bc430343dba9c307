// SPDX-License-Identifier: Apache-2.0
//
// TextEncoder: a Hugging Face model folder as it was downloaded, from texts to vectors and scores.
// Part of the library encore::text.
//
// What sentence-transformers computes from the same folder is the reference: its order of modules,
// pooling, prompts and precedence of files; of the tokenizer's files see Tokenizer::Open. Vectors
// are computed in f32 unless OpenOptions say otherwise. A text's bits depend on that text, the
// folder and the options alone: not on the other texts, their order, batch sizes, the executor or
// the SIMD target (with FMA).

#ifndef ENCORE_TEXT_ENCODER_H_
#define ENCORE_TEXT_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/call_stats.h"
#include "encore/encoder.h"
#include "encore/executor.h"
#include "encore/export.h"
#include "encore/precision.h"
#include "encore/safetensors.h"
#include "encore/scratch.h"
#include "encore/status.h"
#include "encore/tensor.h"
#include "encore/tokenizer.h"

namespace encore::inline v0_1 {

// From the vectors h_t of a text's T tokens to one vector:
//   kCls               h_0
//   kMax               the largest of each column
//   kMean              sum h_t / T
//   kMeanSqrtLength    sum h_t / sqrt(T)
//   kWeightedMean      sum (t + 1) h_t / sum (t + 1)
//   kLastToken         h_(T - 1)
// Several are concatenated: those that a folder names by booleans in this order, a list in its own.
// (Radford et al. 2019 and Muennighoff 2022 for the last two; Reimers & Gurevych 2019,
// arXiv:1908.10084 for the others.)
enum class PoolingMode : uint8_t { kCls, kMax, kMean, kMeanSqrtLength, kWeightedMean, kLastToken };
// "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken".
ENCORE_API std::string_view PoolingModeName(PoolingMode mode);

// A view of the caller's texts, in UTF-8: a vector or span of std::string or of std::string_view,
// or a list, all of which must outlive the call.
class Texts {
 public:
  Texts() = default;
  Texts(std::span<const std::string_view> texts)  // NOLINT(google-explicit-constructor)
      : data_(texts.data()), size_(texts.size()), strings_(false) {}
  Texts(std::span<const std::string> texts)  // NOLINT(google-explicit-constructor)
      : data_(texts.data()), size_(texts.size()), strings_(true) {}
  Texts(const std::vector<std::string_view>& texts)  // NOLINT(google-explicit-constructor)
      : Texts(std::span(texts)) {}
  Texts(const std::vector<std::string>& texts)  // NOLINT(google-explicit-constructor)
      : Texts(std::span(texts)) {}
  Texts(std::initializer_list<std::string_view> texts)
      : Texts(std::span(texts.begin(), texts.size())) {}

  size_t size() const { return size_; }
  std::string_view operator[](size_t i) const {
    return strings_ ? std::string_view(static_cast<const std::string*>(data_)[i])
                    : static_cast<const std::string_view*>(data_)[i];
  }

 private:
  const void* data_ = nullptr;
  size_t size_ = 0;
  bool strings_ = false;
};

// What the caller wants otherwise than the folder says.
struct OpenOptions {
  // Keys that may change the result are an error: of config.json those that another family reads,
  // of the other files all that encore does not know. true: they are listed in Describe() and
  // ignored. Keys that sentence-transformers and transformers do not look at (of config.json those
  // that no family reads, unknown ones of Dense modules and of config_sentence_transformers.json)
  // are listed there in any case.
  bool ignore_unknown_keys = false;
  // Empty: the folder's; without modules.json the mean, or the last token of causal language models
  // (architectures[0] ends in ForCausalLM, and is_causal is not false).
  std::vector<PoolingMode> pooling = {};
  std::optional<bool> normalize = {};  // the folder's modules
  // Tokens; the folder's: max_seq_length of sentence_bert_config.json, else the smaller one of
  // model_max_length (tokenizer_config.json) and the model's positions. Models with rotary
  // positions compute texts beyond max_position_embeddings where this or max_seq_length asks for
  // them; tables of positions end texts, and Describe() says so. At least the tokenizer's
  // special tokens.
  std::optional<size_t> max_length = {};
  Executor executor = {};  // packs the weights
  // Of the products in the encoder's layers. Embeddings, pooling, dense modules, heads of
  // classifiers and the vectors are f32 in each.
  // If empty: what the folder's weights were made for (`encore convert`), else f32.
  std::optional<Precision> precision = {};
  // As EncoderOptions::keep. Of weights that were made for int8, those that are not int8 are kept
  // too.
  std::vector<MatrixOfLayer> keep = {};
  bool amx_bf16 = false;  // as EncoderOptions::amx_bf16
  // The head of a masked language model is opened too, for PredictTokens; without modules.json also
  // for EncodeSparse, with the maximum and relu. Folders with SpladePooling have it in any case. It
  // takes 4 bytes for each value of the table of words.
  bool language_head = false;
  // An adapter for a task is added to the weights, where the folder has some: "retrieval.query",
  // "retrieval.passage", "separation", "classification" or "text-matching" of Jina v3. Empty: none,
  // the weights as they are. Prompts are another thing: EncodeOptions::prompt_name has those.
  std::string task = {};
  // Each call reads embedding tables from the mapped files. kCopied: from a copy of the tables in
  // memory, so that changes to the files do no harm.
  FileMemory weights = FileMemory::kMapped;
  // A folder for packed weights, made if it is not there; empty: none. Opening maps them from there
  // without packing, and processes share their memory: see PackedCache in encoder.h, whose
  // identity is that of the weight files and config.json. The tables of tokenizer.json are kept
  // there too, so that opening does not make them: a copy of them is read if the bytes of the
  // tokenizer's files and config.json are those it was made of, else they are made and written
  // again. Describe() says how both were used.
  std::string cache = {};
  // As PackedCache::compare and PackedCache::trust: at most one of the two. With compare_cache
  // the tokenizer's tables are made and written again; trust_cache changes nothing of them.
  bool compare_cache = false;
  bool trust_cache = false;
  // Of the calls' memory, what the model keeps for the next ones, those of all threads together.
  size_t kept_bytes = size_t{128} << 20;
};

struct EncodeOptions {
  Executor executor = {};
  // Before each text: a name from config_sentence_transformers.json, or the text itself (at most
  // one of the two). Nothing: the folder's default_prompt_name. "" is no prompt.
  std::optional<std::string> prompt_name = {};
  std::optional<std::string> prompt = {};
  // Tokens, prompt and special ones included; 0: max_length(). At most the model's positions.
  size_t max_length = 0;
  OnLong on_long = OnLong::kCut;
  OnInvalidUtf8 on_invalid_utf8 = OnInvalidUtf8::kError;
  bool plain_text = false;  // see TokenizeOptions
  // Length 1 by p = 2, after everything else; false: without the folder's last normalization.
  // Nothing: as the folder's modules (or OpenOptions) say.
  std::optional<bool> normalize = {};
  // The first so many columns only (Matryoshka, arXiv:2205.13147), cut where sentence-transformers
  // cuts: after all modules; then normalized again if `normalize` is true. 0: the folder's
  // truncate_dim, or all.
  size_t dimensions = 0;
  // Tokens computed at once: more is a little faster and takes more memory. 0: encore's choice.
  size_t batch_tokens = 0;
  CallStats* stats = nullptr;  // filled by the call; null: nothing is measured
  // Called after each batch, on the calling thread; may set the stop flag, must not throw.
  std::function<void(const CallProgress&)> progress = {};
  Scratch* scratch = nullptr;  // what the call works in; null: memory that the model keeps
};

// What became of each text.
struct TextCounts {
  std::vector<size_t> tokens;  // [texts]: tokens computed, special ones included
  std::vector<size_t> cut;     // [texts]: tokens left out because of max_length
  size_t texts_cut = 0;        // texts with any left out
};

struct Embeddings {
  Tensor vectors;  // F32 [texts, dimensions], in the order of the texts
  TextCounts counts;
};

struct TokenVectors {
  Tensor vectors;  // F32 [tokens, d_model]: the last hidden state, before pooling
  Tokens tokens;   // with offsets
};

// What a classification head says.
struct Predictions {
  Tensor values;  // F32 [texts, labels]
  TextCounts counts;
};

struct Scores {
  std::vector<float> values;  // [documents], larger is better
  TextCounts counts;
};

// What follows a head's last linear layer.
enum class ScoreActivation : uint8_t {
  kIdentity,  // the logits
  kSigmoid,
  kSoftmax,
  // As sentence-transformers' CrossEncoder: the folder's activation_fn, else the sigmoid for one
  // label and the identity for more.
  kAsCrossEncoder,
  // As transformers' pipeline "text-classification", by problem_type of config.json: the identity
  // for "regression", the sigmoid for "multi_label_classification", the softmax for
  // "single_label_classification". Where it is null: the sigmoid for one label, the softmax for
  // more.
  kAsClassifier,
};
// "identity", "sigmoid", "softmax", "as cross-encoder", "as classifier".
ENCORE_API std::string_view ScoreActivationName(ScoreActivation activation);
// Of one of these names, of "none", which is the identity, and of torch's classes:
// "torch.nn.Sigmoid" or "torch.nn.modules.activation.Sigmoid". kInvalidArgument for any other.
ENCORE_API Result<ScoreActivation> ScoreActivationFromName(std::string_view name);

struct ScoreOptions {
  Executor executor = {};
  // As EncodeOptions: before the first text of a pair, or the system's message of a chat template.
  std::optional<std::string> prompt_name = {};
  std::optional<std::string> prompt = {};
  size_t max_length = 0;  // of a text or pair
  OnLong on_long = OnLong::kCut;
  OnInvalidUtf8 on_invalid_utf8 = OnInvalidUtf8::kError;
  bool plain_text = false;
  // Nothing: kAsCrossEncoder in Score, kAsClassifier in Classify and ClassifyIds.
  std::optional<ScoreActivation> activation = {};
  size_t batch_tokens = 0;
  CallStats* stats = nullptr;
  std::function<void(const CallProgress&)> progress = {};
  Scratch* scratch = nullptr;  // as EncodeOptions
};

// Sparse vectors, in compressed rows: text i has the entries from row_starts[i] to
// row_starts[i + 1] of indices and values. Indices are token ids, which rise within a text; no
// value is 0.
struct SparseVectors {
  size_t columns = 0;              // of a row written out: the vocabulary
  std::vector<size_t> row_starts;  // [texts + 1]
  std::vector<int32_t> indices;    // [entries]
  std::vector<float> values;       // [entries]
  TextCounts counts;
};

struct SparseOptions {
  Executor executor = {};
  // As EncodeOptions.
  std::optional<std::string> prompt_name = {};
  std::optional<std::string> prompt = {};
  size_t max_length = 0;
  OnLong on_long = OnLong::kCut;
  OnInvalidUtf8 on_invalid_utf8 = OnInvalidUtf8::kError;
  bool plain_text = false;
  // "query" or "document": which route texts take where the folder has a Router. Nothing: its
  // default route. Other folders compute both alike.
  std::optional<std::string> task = {};
  // Of each text only so many entries, those of the largest magnitude (of equals the lower index).
  // 0: max_active_dims of the folder, or all.
  size_t max_active_dims = 0;
  size_t batch_tokens = 0;
  CallStats* stats = nullptr;
  std::function<void(const CallProgress&)> progress = {};
  Scratch* scratch = nullptr;  // as EncodeOptions
};

// How labels of tokens become entities, as transformers' aggregation_strategy: each token's best
// label by itself (kNone), or neighbours of one label joined (kSimple), after a word's tokens have
// agreed on the label of the first, of the mean of their scores, or of the highest score.
enum class Aggregation : uint8_t { kNone, kSimple, kFirst, kAverage, kMax };
// "none", "simple", "first", "average", "max".
ENCORE_API std::string_view AggregationName(Aggregation aggregation);

struct Entity {
  std::string label;  // of the folder; joined ones without "B-" and "I-"
  float score = 0;    // by softmax; of several tokens or words their mean
  ByteRange place;    // in the text
};

struct Entities {
  std::vector<std::vector<Entity>> of_texts;  // [texts], in the order of the text
  TextCounts counts;
};

struct LabelOptions {
  Executor executor = {};
  size_t max_length = 0;
  OnLong on_long = OnLong::kCut;
  OnInvalidUtf8 on_invalid_utf8 = OnInvalidUtf8::kError;
  bool plain_text = false;
  Aggregation aggregation = Aggregation::kSimple;
  std::vector<std::string> ignore_labels = {"O"};  // entities of these labels are left out
  size_t batch_tokens = 0;
  CallStats* stats = nullptr;
  std::function<void(const CallProgress&)> progress = {};
  Scratch* scratch = nullptr;  // as EncodeOptions
};

struct TokenLogits {
  Tensor logits;  // F32 [rows, labels]: a row a token, or a position that was asked for
  Tokens tokens;  // with offsets
};

// A model's memory, in bytes. Beside it there are the tokenizer, norms and biases.
struct ModelMemory {
  size_t mapped = 0;   // of mapped files, weights and cache, whether or not their pages are touched
  size_t packed = 0;   // of matrices packed in own memory
  size_t tables = 0;   // of embeddings and other tables in own memory
  size_t scratch = 0;  // kept between calls
};

// A model with its tokenizer. Immutable: any number of threads may use it at once. Copying shares
// it. Methods return kInvalidArgument with the text's index where a text is at fault; kUnsupported
// for what the folder's model cannot do (a head that it does not have, texts without a supported
// tokenizer); kOutOfMemory. Results are complete or absent.
//
// A thread with 128 KiB of stack may call all but Open, in every precision. Between calls a model
// keeps up to OpenOptions::kept_bytes of memory for the next ones.
//
// fork(): a child may use its parent's models, whatever other threads of the parent were doing, and
// open its own; results have the same bits. Its calls with a ThreadPool of the parent's, or with
// OpenMP once the parent has used that, run on the calling thread; a pool that the child makes has
// threads. exit() may be called while other threads are in a call: encore has no static with a
// destructor. What the caller destroys, model or pool, no call may be using.
class ENCORE_API TextEncoder {
 public:
  // To move is to copy: what was moved from stays as it is.
  TextEncoder(const TextEncoder&) = default;
  TextEncoder& operator=(const TextEncoder&) = default;

  // Reads config.json, *.safetensors, the tokenizer and sentence-transformers' files. Weights are
  // packed; embedding tables stay mapped from the file, which must not be changed in place: a call
  // refuses a file that was changed before it (kIo), and one that is shortened during a call ends
  // the process by SIGBUS. OpenOptions::weights makes a copy instead.
  // kNotFound, kUnsupported, kCorruptData, kInvalidArgument name the file, the key or tensor, what
  // was found and what was wanted; kIo; kOutOfMemory.
  static Result<TextEncoder> Open(const std::string& folder, const OpenOptions& options = {});

  // ---- Vectors -------------------------------------------------------------------------------
  Result<Embeddings> Encode(Texts texts, const EncodeOptions& options = {}) const;
  // The same into the caller's memory [texts, dimensions]: contiguous rows that do not overlap
  // (stride 1 along dimensions, at least dimensions from row to row); counts may be null. On an
  // error, what is in them means nothing.
  Status Encode(Texts texts, MutableView vectors, TextCounts* counts = nullptr,
                const EncodeOptions& options = {}) const;
  // From token ids as they are: no prompt, template or cut. For models whose tokenizer encore
  // does not support. Ids must be below the vocabulary's size, lists not empty.
  Result<Embeddings> EncodeIds(std::span<const std::vector<int32_t>> ids,
                               const EncodeOptions& options = {}) const;
  // The hidden states of one text's tokens, cut to max_length, the folder's prompt before it;
  // offsets count from the prompt's start. `normalize` and `dimensions` are for vectors of texts:
  // kInvalidArgument.
  Result<TokenVectors> EncodeTokens(std::string_view text, const EncodeOptions& options = {}) const;

  // ---- Classification heads -----------------------------------------------------------------
  // Rerankers (one label): one score for each pair of the query and a document. The folder's
  // default prompt, if it has one, goes before the first text of a pair, as in
  // CrossEncoder.predict. A causal language model with LogitScore has one label too: the logit of
  // one token after the pair, less that of another. Where the folder has a chat template for pairs,
  // that makes a text of them; kUnsupported names what encore does not support of it.
  Result<Scores> Score(std::string_view query, Texts documents,
                       const ScoreOptions& options = {}) const;
  // Classifiers: of texts, or of pairs (first[i], second[i]), the value of each label.
  Result<Predictions> Classify(Texts texts, const ScoreOptions& options = {}) const;
  Result<Predictions> Classify(Texts first, Texts second, const ScoreOptions& options = {}) const;
  Result<Predictions> ClassifyIds(std::span<const std::vector<int32_t>> ids,
                                  std::span<const std::vector<uint8_t>> type_ids = {},
                                  const ScoreOptions& options = {}) const;

  // ---- Labels of tokens, and tokens in place of others ---------------------------------------
  // Models for token classification (names, personal data): entities as transformers' pipeline
  // finds them, with bytes of the text. No prompt is put before a text.
  Result<Entities> FindEntities(Texts texts, const LabelOptions& options = {}) const;
  // What the head says of each token of a text, special ones included.
  Result<TokenLogits> LabelTokens(std::string_view text, const LabelOptions& options = {}) const;
  // Masked language models: the logits of every token of the vocabulary at these positions of a
  // text's tokens ("[MASK]" may be written in it). kInvalidArgument for a position beyond them.
  Result<TokenLogits> PredictTokens(std::string_view text, std::span<const size_t> positions,
                                    const LabelOptions& options = {}) const;

  // ---- Sparse vectors ------------------------------------------------------------------------
  // As sentence-transformers' SparseEncoder, of a masked language model with SpladePooling:
  //   v_j = log(1 + max(0, logit_tj)), its maximum or sum over the tokens t
  // (Formal et al. 2021, arXiv:2107.05720, and later). Where activation_function is log1p_relu, the
  // logarithm is taken twice. Of SparseStaticEmbedding, alone or as a Router's query side: v_j =
  // weight_j for each token j of the text. Of BGE-M3, by its sparse_linear.pt (arXiv:2402.03216):
  // v_j = max(0, w h_t + b), its maximum over the tokens t with id j, special ones left out.
  Result<SparseVectors> EncodeSparse(Texts texts, const SparseOptions& options = {}) const;

  // ---- Its memory ----------------------------------------------------------------------------
  // Makes the next call of up to max_tokens tokens, of texts of up to 8 bytes a token, as fast as
  // later ones, without new memory or page faults: makes `scratch` or one of those kept large
  // enough, reads all pages of tables, computes some texts. It also sums up mapped files, so that
  // to touch one does no harm. kInvalidArgument if kept_bytes is too small; the errors of Encode.
  Status Prepare(size_t max_tokens, const Executor& executor = {},
                 Scratch* scratch = nullptr) const;
  // Scratch::size_bytes() after that, or a little more; SIZE_MAX: it cannot be had.
  size_t WorkspaceBytes(size_t tokens, int threads) const;
  void TrimMemory() const;  // gives back what is kept between calls
  ModelMemory Memory() const;

  // ---- What it is ----------------------------------------------------------------------------
  size_t dimensions() const;  // of Encode's vectors; 0: the folder's modules give none
  // What EncodeOptions::dimensions may be: more than dimensions() where the folder has a
  // truncate_dim.
  size_t max_dimensions() const;
  // Columns of EncodeSparse's vectors; 0: the folder gives none.
  size_t sparse_dimensions() const;
  bool labels_tokens() const;  // labels() are of tokens
  size_t d_model() const;      // of token vectors
  size_t max_length() const;   // tokens of a text, special ones included; 0: no limit
  bool has_tokenizer() const;
  const Tokenizer& tokenizer() const&;  // only where has_tokenizer()
  const Tokenizer& tokenizer() const&& = delete;
  bool has_encoder() const;         // false: static embeddings, which have no layers
  const Encoder& encoder() const&;  // only where has_encoder()
  const Encoder& encoder() const&& = delete;
  // Names of the head's outputs; empty without a head.
  const std::vector<std::string>& labels() const&;
  const std::vector<std::string>& labels() const&& = delete;
  // Names and texts of the folder's prompts.
  const std::vector<std::pair<std::string, std::string>>& prompts() const&;
  const std::vector<std::pair<std::string, std::string>>& prompts() const&& = delete;
  // Every decision taken, those of a file together: the model's (family, positions, activation,
  // type of the weights, precision), the tokenizer's (casing and all else), maximum length,
  // prompts, pooling, further modules, columns, scores, and what was ignored.
  const std::vector<Decision>& Describe() const&;
  const std::vector<Decision>& Describe() const&& = delete;

  struct Impl;

 private:
  explicit TextEncoder(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace encore

#endif  // ENCORE_TEXT_ENCODER_H_
