// SPDX-License-Identifier: Apache-2.0
//
// What a folder says of late interaction, in the spellings of sentence-transformers'
// MultiVectorEncoder, of PyLate and of Stanford's ColBERT: lengths, prefixes and expansion of
// queries and documents, and which of their tokens are scored.

#ifndef ENCORE_ENGINE_TEXT_LATE_SETTINGS_H_
#define ENCORE_ENGINE_TEXT_LATE_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "encore/multi_vector_encoder.h"
#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/models/text_model.h"
#include "engine/text/after_encoder.h"
#include "engine/text/folder_files.h"
#include "engine/text/token_store.h"
#include "engine/tokenizer/packed_tokenizer.h"

namespace encore::inline v0_1::internal {

// The projection of Stanford's class, in the model's own file.
inline constexpr std::string_view kStanfordProjection = "linear.weight";

struct LateSettings {
  TaskLengths lengths;
  // "query" and "document", and the prefixes of the prompts of these names.
  std::vector<std::pair<std::string, std::string>> prefixes;
  bool has_mask = false;
  std::vector<std::string> skip_words;
  std::vector<std::string> skip_tasks = {"document"};
  std::vector<int32_t> keep_ids;  // empty: all
  bool normalizes = false;        // behind all modules, though none says so
  bool mean = false;              // similarity_fn_name is meanmaxsim

  // Puts the prefixes before the prompts that they belong to.
  void AddPrefixes(SentenceConfig* config) const;
};
Result<LateSettings> ReadLateSettings(const ModelFolder& found, const FolderReading& reading);

// With the prefixes as special tokens where they are tokens that the text alone would not give.
Result<Tokenizer> OpenLateTokenizer(const ModelFolder& found, const LateSettings& settings,
                                    const TokenizerCache& cache);

// The projections and normalizations of tokens.
Result<AfterEncoder> ReadLateModules(const ModelFolder& found, const LateSettings& settings,
                                     size_t d_model, std::optional<bool> normalize,
                                     const FolderReading& reading);

// The settings in ids and numbers of one model.
struct LateModel {
  // By TextTask: tokens to which a text is cut, and whether the folder has a length for the task.
  size_t max_length[3] = {};
  bool own_length[3] = {};
  std::optional<Expansion> expansion;  // of queries
  bool fixed = false;                  // no query is longer than its expansion
  bool scores_expansion = false;
  std::vector<int32_t> skip_ids;  // sorted; these tokens have no row,
  bool skips[3] = {};             // by TextTask
  std::vector<int32_t> keep_ids;  // sorted; unless empty, other tokens have none but in queries
  bool skips_first = false;       // a text's first token has no row
  bool mean = false;

  void SetLength(TextTask task, size_t tokens) {
    max_length[static_cast<size_t>(task)] = tokens;
    own_length[static_cast<size_t>(task)] = true;
  }
  // Whether a text's token at `place` has a row among the vectors.
  bool Keeps(TextTask task, int32_t id, size_t place, bool expanded) const;
};
// `max_length`: of a text without a task. `wanted`: OpenOptions'.
Result<LateModel> ResolveLate(const ModelFolder& found, const LateSettings& settings,
                              const Tokenizer& tokenizer, const TextModel& model, size_t max_length,
                              std::optional<size_t> wanted, const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_LATE_SETTINGS_H_
