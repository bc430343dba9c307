// SPDX-License-Identifier: Apache-2.0
//
// Options that several commands have, with what follows from them: precision, a layer and a batch
// by hand, what no tensor of a file of weights tells, texts and their model.

#ifndef ENCORE_TOOLS_ENCORE_SHARED_OPTIONS_H_
#define ENCORE_TOOLS_ENCORE_SHARED_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/models.h"
#include "encore/image_encoder.h"
#include "encore/multi_vector_encoder.h"
#include "encore/precision.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "encore/torch_weights.h"
#include "tools/encore/command_line.h"
#include "tools/encore/text_input.h"

namespace encore::tool {

// Writes the file whole or not at all; throws Failure.
void WriteTextFile(const std::string& path, const std::string& text);

// Removes what killed commands have left where this one writes (RemoveAbandoned).
void ClearFolderOf(const std::string& output);

// Before long work rather than after it: throws Failure if a file cannot be written there, unless
// the path is empty. What is there stays as it is, but for what ClearFolderOf removes.
void WantWritable(const std::string& path, const std::string& option);

// Throws Failure where the output of this option would take the place of `taken`, which is "the
// file of --weights", unless one of them is empty.
void WantOtherFile(const std::string& option, const std::string& output, const std::string& taken,
                   const std::string& what);

// Where an output goes, before a long computation rather than after it: throws Failure if there is
// no such folder; else ClearFolderOf. Whatever else keeps the file from being written is found when
// it is.
void WantFolderOf(const std::string& output);

// Throws Failure, naming --seconds, unless it is 0 to 600.
void CheckSeconds(double seconds);

inline constexpr char kAmxBf16Help[] =
    "With bf16, use AMX if the machine has it: faster, not the bits of other machines";

inline constexpr char kPlainTextHelp[] =
    "Read \"[SEP]\" and the like in a text as text, not as special tokens";
inline constexpr char kReplaceInvalidHelp[] =
    "Replace bytes that are not UTF-8, and half surrogate pairs in JSON, by U+FFFD; default: an "
    "error";
inline constexpr char kIgnoreUnknownKeysHelp[] =
    "Ignore, and list, keys that might change the result: in config.json those of other families, "
    "in "
    "other files unknown ones";

// As --keep has it: "0.linear1".
std::string MatrixName(const MatrixOfLayer& matrix);

// --precision and --keep. What each precision computes is in encore/precision.h.
struct PrecisionOptions {
  std::string name;               // empty: not given
  std::vector<std::string> keep;  // "0.linear1": layer, counted from 0, and matrix
  bool amx_bf16 = false;

  // Adds both, and returns --precision, which has these rules besides its own.
  Option AddTo(const Command& command, OptionRules rules = {});
  // And --amx-bf16, for commands that run a model.
  void AddAmxTo(const Command& command);

  // Nothing where the option was not given.
  std::optional<Precision> precision() const;
  // Throws Failure where an entry of --keep is no matrix. That the model has the layer is the
  // encoder's to check.
  std::vector<MatrixOfLayer> kept() const;
};

// A layer and a batch by hand. Sizes that have a name are in bench/measure/models.h.
struct ModelOptions {
  // BERT base, one sequence of 128 tokens.
  size_t d_model = 768;
  size_t heads = 12;
  size_t d_ff = 3072;
  size_t batch = 1;
  size_t seq = 128;
  std::vector<size_t> lengths;  // in place of batch and seq

  // Adds --d-model, --heads, --d-ff, --batch, --seq and --lengths, and returns them.
  std::vector<Option> AddTo(const Command& command);

  // The name "custom", activation GELU. Throws Failure if the heads do not divide the width.
  bench::NamedWorkload Workload() const;
};

// What no tensor of a file of weights tells; its own metadata is in encore/torch_weights.h.
struct TorchOptions {
  std::optional<int> nhead;  // signed, or -2 would pass for 2^64 - 2
  std::string activation;    // empty: not given
  std::optional<double> eps;
  std::optional<bool> norm_first;

  // Adds --nhead, --activation, --eps and --norm-first.
  void AddTo(const Command& command);

  // Throws Failure where one has a value that it cannot have.
  TorchOverrides overrides() const;
};

// --input and how its texts are found.
struct InputOptions {
  std::string path;
  std::string format;  // empty: not given
  std::string field;
  bool jsonl = false;
  bool replace_invalid = false;

  void AddTo(const Command& command);
  TextSource source() const;
};

// Of commands on texts.
struct TextOptions {
  std::string model;
  InputOptions input;
  int threads = 0;
  std::string target;
  PrecisionOptions precision;
  size_t max_length = 0;
  std::string on_long = "cut";
  size_t batch_tokens = 0;
  bool plain_text = false;
  bool ignore_unknown_keys = false;
  std::string task;  // of an adapter; embed.cc has the option
  std::string cache;
  bool compare_cache = false;
  bool trust_cache = false;

  void AddTo(const Command& command);

  // What EncodeOptions and ScoreOptions have in common.
  template <typename Settings>
  Settings SettingsOf(const Executor& executor) const {
    return {
        .executor = executor,
        .max_length = max_length,
        .on_long = on_long == "error" ? OnLong::kError : OnLong::kCut,
        .on_invalid_utf8 = input.replace_invalid ? OnInvalidUtf8::kReplace : OnInvalidUtf8::kError,
        .plain_text = plain_text,
        .batch_tokens = batch_tokens};
  }
};

// Which of a folder's vectors are wanted. kEither: of texts, or of tokens where the folder is one
// of late interaction.
enum class VectorsWanted : uint8_t { kOfTexts, kOfTokens, kOfImages, kEither };

// The threads and the model, opened. Throws Failure.
class TextSession {
 public:
  explicit TextSession(const TextOptions& options, VectorsWanted wanted = VectorsWanted::kOfTexts);
  // Unless late() or images() is another model than null.
  const TextEncoder& model() const { return *model_; }
  const MultiVectorEncoder* late() const { return late_ ? &*late_ : nullptr; }
  const ImageEncoder* images() const { return images_ ? &*images_ : nullptr; }
  Executor executor() const { return pool_->executor(); }

 private:
  std::optional<ThreadPool> pool_;
  std::optional<TextEncoder> model_;
  std::optional<MultiVectorEncoder> late_;
  std::optional<ImageEncoder> images_;
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_SHARED_OPTIONS_H_
