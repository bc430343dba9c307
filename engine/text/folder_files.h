// SPDX-License-Identifier: Apache-2.0
//
// sentence-transformers' files in a model's folder: which modules there are, how each is set, and
// what the folder says of prompts, lengths and scores. All of it is read here, and each decision
// told with the file that led to it.
//
// Errors name file and key: kInvalidArgument for a key that nobody knows (unless
// ignore_unknown_keys, which tells it instead) and for values that do not fit, kUnsupported for
// settings that change the result and that encore has not.

#ifndef ENCORE_ENGINE_TEXT_FOLDER_FILES_H_
#define ENCORE_ENGINE_TEXT_FOLDER_FILES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/ops.h"
#include "encore/status.h"
#include "encore/text_encoder.h"
#include "encore/tokenizer.h"
#include "engine/base/quoted.h"
#include "engine/io/folder.h"
#include "engine/io/json_members.h"
#include "engine/text/torch_activation.h"

namespace encore::inline v0_1::internal {

// What the readers of these files are given, and where they tell what they took.
struct FolderReading {
  const Folder& folder;
  bool ignore_unknown_keys = false;
  std::vector<Decision>& decisions;

  void Tell(std::string what, std::string value, std::string source) const {
    decisions.push_back({std::move(what), std::move(value), std::move(source)});
  }
};

// The members' own error; else each key that was not read is a decision, as sentence-transformers
// leaves unknown keys of some files alone.
inline Status FinishAsUnused(const JsonMembers& members, const FolderReading& reading) {
  for (const std::string& key : members.Unread()) {
    reading.Tell("ignored", "unknown key " + Quoted(key), members.where());
  }
  return members.status();
}

// As FinishAsUnused, but kInvalidArgument for such a key unless they are to be ignored.
inline Status Finish(const JsonMembers& members, const FolderReading& reading) {
  const std::vector<std::string> unread = members.Unread();
  if (!members.ok() || unread.empty() || reading.ignore_unknown_keys) {
    return FinishAsUnused(members, reading);
  }
  return InvalidArgument(members.where() + ": unknown key " + Quoted(unread[0]) +
                         "; it may change the result (ignore_unknown_keys lets it pass)");
}

// An error unless the member is absent, null, or the empty object or array: settings that encore
// has no use for and that mean nothing where they are empty.
inline void WantEmpty(JsonMembers& members, std::string_view key) {
  if (!members.Has(key)) return;
  const JsonValue& value = *members.Find(key);
  const bool is_list = value.is_object() || value.is_array();
  if (!is_list || !value.members().empty() || !value.items().empty()) {
    members.Refuse(key, "nothing in it");
  }
}

// A module that comes after the pooling takes the sentence's vector and gives it.
inline void WantSentenceVectors(JsonMembers& members) {
  for (const std::string_view key : {"module_input_name", "module_output_name"}) {
    if (members.String(key, "sentence_embedding") != "sentence_embedding") {
      members.Refuse(key, "'sentence_embedding'");
    }
  }
}

// `path`/`name`, or `name` where path is empty.
std::string Within(std::string_view path, std::string_view name);

enum class ModuleKind : uint8_t { kTransformer, kPooling, kDense, kNormalize, kQuantize };

struct ModuleEntry {
  ModuleKind kind = ModuleKind::kTransformer;
  std::string path;  // within the folder; may be ""
};

// sentence_bert_config.json, which has other names for some models.
struct TransformerSettings {
  std::string file;  // "" if the folder has none
  std::optional<size_t> max_seq_length;
  // Texts are made lower case before the tokenizer's own normalizer. false, as in the file, says
  // nothing: the normalizer may do it all the same.
  bool lower_case = false;
  bool classifies = false;  // transformer_task is "sequence-classification"
};

struct TransformerFolder {
  // Of modules.json, if there is one: a transformer, then at most one pooling before any number of
  // dense layers, normalizations and quantizers.
  std::optional<std::vector<ModuleEntry>> modules;
  std::string path;  // of the transformer, within the model's folder
  Folder folder;     // the same, opened
  TransformerSettings settings;
};

// Reads modules.json and the transformer's settings; these do not count without modules.json.
Result<TransformerFolder> FindTransformer(const FolderReading& reading);

// Whether the model is given type ids. False where it has no table for them, where
// model_input_names of tokenizer_config.json leaves token_type_ids out, and without that key where
// the tokenizer's class does (tokenizer_class.h). All are 0 then, those of a pair's second text
// too.
Result<bool> ReadUsesTypeIds(const TransformerFolder& transformer, size_t type_vocab_size,
                             const FolderReading& reading);

// What says how many tokens a text may have.
struct LengthSources {
  std::optional<size_t> option;             // OpenOptions::max_length
  const TransformerSettings& settings;      // its max_seq_length
  std::optional<size_t> tokenizer_maximum;  // model_max_length of tokenizer_config.json
  size_t model_usual = 0;                   // TextModel::usual_tokens()
  size_t model_maximum = 0;                 // TextModel::max_tokens()
  size_t special_tokens = 0;                // of a text
  bool positions_skip_padding = false;      // TextModel::positions_skip_padding()
};
// The option, else max_seq_length, else the smaller one of the tokenizer's and the model's usual.
// What a file says beyond the model's is capped, and told, and so is that sentence-transformers
// takes more tokens than the cap where some are padding and need no position; an option beyond it
// is kInvalidArgument, and so is what leaves no room for the special tokens.
Result<size_t> ChooseMaxLength(const LengthSources& sources, const FolderReading& reading);

// The tokenizer of a model's folder, or of a folder that has nothing but one. A model of a family
// that encore has not is no error.
struct FolderTokenizer {
  Tokenizer tokenizer;
  size_t max_length = 0;  // tokens that a text may have; 0: no limit is known
  bool type_ids = false;  // the model is given type ids, as far as the tokenizer's files say
};
Result<FolderTokenizer> OpenFolderTokenizer(const std::string& folder, bool ignore_unknown_keys);

inline constexpr std::string_view kSentenceConfigFile = "config_sentence_transformers.json";

struct SentenceConfig {
  std::vector<std::pair<std::string, std::string>> prompts;  // names and texts, in the file's order
  std::optional<std::string> default_prompt_name;            // one of them
  std::optional<size_t> truncate_dim;
  std::optional<std::string> activation_fn;  // of a cross-encoder's scores

  // The text of this name, or null.
  const std::string* FindPrompt(std::string_view name) const;
};
// As sentence-transformers, which reads the file only beside modules.json: `has_modules` false
// ignores it, and says so.
Result<SentenceConfig> ReadSentenceConfig(bool has_modules, const FolderReading& reading);

// The modes of a Pooling module in the order in which their vectors are concatenated: booleans in
// PoolingMode's order, a list in its own. `given` replaces the folder's, where not empty. Without a
// module, the last token where config.json names a causal language model, else the mean.
Result<std::vector<PoolingMode>> ReadPooling(const ModuleEntry* module, size_t d_model,
                                             const std::vector<PoolingMode>& given,
                                             const FolderReading& reading);

// A linear layer after the pooling, with an activation behind it.
struct Dense {
  PackedLinear linear;
  const TorchActivation* activation = nullptr;  // never null once it was read
};
// Reads the module's config.json and model.safetensors in `path` and packs its weights. `width` is
// that of the vectors that come in.
Result<Dense> ReadDense(const std::string& path, size_t width, const FolderReading& reading);

// The few settings that a Normalize module may have in `path`.
Status CheckNormalize(const std::string& path, const FolderReading& reading);

// The function between a classification head and its scores, as in sentence-transformers'
// CrossEncoder: activation_fn of config_sentence_transformers.json, else of config.json's
// sentence_transformers, else its sbert_ce_default_activation_function, else the sigmoid for one
// label and the identity for more. `path` is the Transformer module's folder.
Result<const TorchActivation*> ReadScoreActivation(const std::string& path,
                                                   const SentenceConfig& config, size_t labels,
                                                   const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_FOLDER_FILES_H_
