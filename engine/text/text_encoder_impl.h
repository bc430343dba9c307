// SPDX-License-Identifier: Apache-2.0
//
// What a TextEncoder holds, and the loop over all texts of a call: chunks are tokenized, sorted,
// cut into batches and computed.

#ifndef ENCORE_ENGINE_TEXT_TEXT_ENCODER_IMPL_H_
#define ENCORE_ENGINE_TEXT_TEXT_ENCODER_IMPL_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encore/text_encoder.h"
#include "engine/base/status_macros.h"
#include "engine/models/text_model.h"
#include "engine/text/after_encoder.h"
#include "engine/text/call_watch.h"
#include "engine/text/late_settings.h"
#include "engine/text/scratch.h"
#include "engine/text/sparse_vectors.h"
#include "engine/text/token_labels.h"

namespace encore::inline v0_1 {

struct TextEncoder::Impl {
  internal::TextModel model;
  Result<Tokenizer> tokenizer;  // or why there is none
  // Nothing where nothing makes vectors of texts: in a cross-encoder, for instance.
  std::optional<internal::AfterEncoder> after = {};
  // ScoreActivation::kAsCrossEncoder, or what encore does not support of it.
  Result<const internal::ActivationRow*> as_cross_encoder =
      internal::FindTorchActivation("torch.nn.Identity");
  // ScoreActivation::kAsClassifier, or what is wrong with the folder's problem_type.
  Result<const internal::ActivationRow*> as_classifier =
      internal::FindTorchActivation("torch.nn.Identity");
  internal::SentenceConfig config = {};
  size_t max_length = 0;  // 0: there is no limit
  bool use_type_ids = false;
  std::optional<bool> normalize = {};  // OpenOptions'
  internal::SparseSide sparse = {};
  std::optional<internal::WordRules> words = {};    // where the model labels tokens
  std::optional<internal::Expansion> padding = {};  // of texts, unless a call expands them
  std::optional<internal::Model2VecTexts> model2vec = {};
  // How pairs become texts where a chat template does it, or why it cannot be used.
  Result<std::optional<internal::PairChatTemplate>> pair_template =
      std::optional<internal::PairChatTemplate>();
  std::optional<internal::LateModel> late = {};  // of late interaction
  std::vector<Decision> decisions = {};
  mutable internal::ScratchPool scratch;

  // Columns of Encode's vectors, unless a call wants fewer.
  size_t dimensions() const {
    const size_t width = after ? after->width() : model.hidden_width();
    return std::min(config.truncate_dim.value_or(width), width);
  }
};

namespace internal {

// LogitScore's config.json in `path`.
Result<LogitScore> ReadLogitScore(const std::string& path, const FolderReading& reading);
// Without modules.json: of the tokens "yes" and "no". Nothing where config.json's first class is no
// causal language model, or the tokenizer lacks them.
Result<std::optional<LogitScore>> DefaultLogitScore(const Folder& folder,
                                                    const Tokenizer& tokenizer);
// The same source with this prompt.
Result<PairChatTemplate> RenderPairs(PairChatTemplate pairs, std::string_view prompt,
                                     const Tokenizer& tokenizer);
// The chat template that a cross-encoder renders pairs by, with the default prompt. Nothing: pairs
// are the tokenizer's. kUnsupported names what encore does not support.
Result<std::optional<PairChatTemplate>> ReadPairChatTemplate(const ModelFolder& found,
                                                             std::string_view prompt,
                                                             const Tokenizer& tokenizer,
                                                             const FolderReading& reading);

// How texts are padded for a model that was trained on padded texts (TextModel::pads()). Nothing
// where the padding is of no effect: other tokens do not see it, and no row of it is read.
// kUnsupported for padding at the left and for other lengths.
Result<std::optional<Expansion>> ReadPadding(const ModelFolder& found, const Tokenizer& tokenizer,
                                             const TextModel& model, const FolderReading& reading);

// ScoreActivation::kAsClassifier of a model with a head of so many labels.
Result<const ActivationRow*> ClassifierActivation(const Result<ProblemType>& problem, size_t labels,
                                                  const FolderReading& reading);
// Between a head and the values; the folder's own are given.
Result<const ActivationRow*> ResolveActivation(ScoreActivation wanted,
                                               const Result<const ActivationRow*>& as_cross_encoder,
                                               const Result<const ActivationRow*>& as_classifier);

// An error where the folder has no tokenizer.
Status WantTokenizer(const TextEncoder::Impl& impl);

// The text before each text: the call's, by name or as it is, else the folder's default. The
// result is valid as long as options and impl.
Result<std::string_view> ResolvePrompt(const TextEncoder::Impl& impl,
                                       const std::optional<std::string>& prompt_name,
                                       const std::optional<std::string>& prompt);

// max_length as a call has it: 0 is `absent`. kInvalidArgument above that of the model.
Result<size_t> ResolveMaxLength(const TextEncoder::Impl& impl, size_t wanted, size_t absent);

// What a call wants of vectors, `absent` columns where it does not say. kInvalidArgument for more
// than there are.
Result<EncodeSettings> ResolveSettings(const AfterEncoder& after, EncodeSettings wanted,
                                       size_t absent);
// The caller's memory for vectors [rows, dimensions], as TextEncoder::Encode has it.
Status CheckVectors(MutableView vectors, size_t rows, size_t dimensions);

struct StreamOptions {
  Executor executor;
  CallWatch* watch;
  TokenizeOptions tokenize;
  size_t batch_tokens = 0;  // 0: encore's choice
  Scratch* scratch = nullptr;
  // Nothing: of each batch those of TextModel::head_rows.
  std::optional<OutputRows> rows = OutputRows::kAll;
};

// What the options of all calls have in common.
template <typename Options>
TokenizeOptions MakeTokenizeOptions(const Options& options, size_t max_length, bool special) {
  return {.max_length = max_length,
          .on_long = options.on_long,
          .on_invalid_utf8 = options.on_invalid_utf8,
          .add_special_tokens = special,
          .plain_text = options.plain_text};
}

// Of any of the options of a call, whose watch it is. Texts are cut to the encoder's length, ids
// may be as long as the model computes.
template <typename Options>
Result<StreamOptions> MakeStreamOptions(const TextEncoder::Impl& impl, const Options& options,
                                        bool of_ids, std::optional<OutputRows> rows,
                                        CallWatch* watch) {
  const size_t absent = of_ids ? impl.model.max_tokens() : impl.max_length;
  ENCORE_ASSIGN_OR_RETURN(const size_t max_length,
                          ResolveMaxLength(impl, options.max_length, absent));
  return StreamOptions{
      .executor = options.executor,
      .watch = watch,
      .tokenize = MakeTokenizeOptions(options, max_length, !impl.model.is_static()),
      .batch_tokens = options.batch_tokens,
      .scratch = options.scratch,
      .rows = rows};
}

// A chunk of texts whose tokens are held at once: enough that each length fills batches.
inline constexpr size_t kChunkTexts = 8192;
// Texts of static embeddings that are computed together, for each thread: their vectors then are in
// caches.
inline constexpr size_t kStaticTexts = 256;
// Tokens of a batch, from the caller's wish (0: none) and the executor's threads.
size_t BatchTokens(size_t wanted, int threads);

// Takes a batch's hidden states: [tokens, hidden_width()] for kAll, else [texts, hidden_width()];
// scratch->starts has where each text begins. `texts` are indices into the call's.
// Of a local function: std::ref, which allocates nothing.
using TakeBatch =
    std::function<Status(const float* hidden, std::span<const size_t> texts, CallScratch* scratch)>;

// Takes the tokens of a chunk of texts before its batches.
using TakeTokens = std::function<Status(const TokenStore& tokens)>;

// Computes all texts. Counts may be null, take_tokens empty.
Status StreamTexts(const TextEncoder::Impl& impl, const TextInputs& inputs,
                   const StreamOptions& options, const TakeBatch& take, TextCounts* counts,
                   const TakeTokens& take_tokens = {});

// The tokens of one text and their hidden states, before any pooling.
Result<TokenVectors> EncodeTokensOf(const TextEncoder::Impl& impl, std::string_view prompt,
                                    std::string_view text, StreamOptions options);

}  // namespace internal
}  // namespace encore

#endif  // ENCORE_ENGINE_TEXT_TEXT_ENCODER_IMPL_H_
