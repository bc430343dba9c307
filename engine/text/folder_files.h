// SPDX-License-Identifier: Apache-2.0
//
// sentence-transformers' files in a model's folder: modules, their settings, prompts, lengths and
// scores. Each decision is noted with its file.
//
// Errors name file and key: kInvalidArgument for unknown keys (ignore_unknown_keys notes them
// instead) and for values that do not fit, kUnsupported for settings that encore does not have.

#ifndef ENCORE_ENGINE_TEXT_FOLDER_FILES_H_
#define ENCORE_ENGINE_TEXT_FOLDER_FILES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encore/ops.h"
#include "encore/status.h"
#include "encore/text_encoder.h"
#include "encore/tokenizer.h"
#include "engine/base/activations.h"
#include "engine/base/quoted.h"
#include "engine/io/folder.h"
#include "engine/io/json_members.h"
#include "engine/models/model_tensors.h"
#include "engine/text/folder_kind.h"
#include "engine/text/model2vec.h"

namespace encore::inline v0_1::internal {

// The readers' common arguments, and their decisions.
struct FolderReading {
  const Folder& folder;
  bool ignore_unknown_keys = false;
  std::vector<Decision>& decisions;

  void Note(std::string what, std::string value, std::string source) const {
    decisions.push_back({std::move(what), std::move(value), std::move(source)});
  }
};

// The members' error, or a note for each unread key: sentence-transformers ignores unknown keys of
// some files.
inline Status NoteUnreadKeys(const JsonMembers& members, const FolderReading& reading) {
  for (const std::string& key : members.Unread()) {
    reading.Note("ignored", "unknown key " + Quoted(key), members.where());
  }
  return members.status();
}

// As NoteUnreadKeys, but kInvalidArgument for such a key unless they are to be ignored.
inline Status CheckUnreadKeys(const JsonMembers& members, const FolderReading& reading) {
  const std::vector<std::string> unread = members.Unread();
  if (!members.ok() || unread.empty() || reading.ignore_unknown_keys) {
    return NoteUnreadKeys(members, reading);
  }
  return InvalidArgument(members.where() + ": unknown key " + Quoted(unread[0]) +
                         "; it may change the result (ignore_unknown_keys lets it pass)");
}

// An error unless the member is absent, null or empty.
inline void WantEmpty(JsonMembers& members, std::string_view key) {
  if (!members.Has(key)) return;
  const JsonValue& value = *members.Find(key);
  const bool is_list = value.is_object() || value.is_array();
  if (!is_list || !value.members().empty() || !value.items().empty()) {
    members.Refuse(key, "nothing in it");
  }
}

// Between the transformer's hidden states and the vectors of tokens, or of texts.
enum class VectorsOf : uint8_t { kTexts, kTokens };

// The module's input and output are the vectors of texts, or of tokens. `absent`: the input without
// the key; the output without it is the input.
inline void WantVectors(JsonMembers& members, VectorsOf what, VectorsOf absent) {
  const auto name = [](VectorsOf vectors) {
    return vectors == VectorsOf::kTexts ? "sentence_embedding" : "token_embeddings";
  };
  const std::string wanted = "'" + std::string(name(what)) + "'";
  const std::string input = members.String("module_input_name", name(absent));
  if (input != name(what)) members.Refuse("module_input_name", wanted);
  if (members.String("module_output_name", input) != input) {
    members.Refuse("module_output_name", wanted);
  }
}

// `path`/`name`, or `name` where path is empty.
std::string Within(std::string_view path, std::string_view name);

// The file of a module. kNotFound names both.
Result<JsonValue> ReadModuleFile(std::string_view module, const std::string& file,
                                 const FolderReading& reading);

// How a query of late interaction gets more tokens (arXiv:2004.12832).
struct QueryExpansion {
  size_t length = 32;      // tokens that a query has at least
  bool fixed = true;       // and at most
  bool attend = false;     // others see the tokens that are added
  std::string token = {};  // empty: the tokenizer's mask, else its end
};

// Tokens of queries and of documents, where they differ. Without a key a model's other files count;
// a null counts, and means that there is no limit or no expansion.
struct TaskLengths {
  std::optional<std::optional<size_t>> query;
  std::optional<std::optional<size_t>> document;
  std::optional<std::optional<QueryExpansion>> expansion;

  bool empty() const {
    const bool none = !expansion || !*expansion;
    return none && !query.value_or(std::nullopt) && !document.value_or(std::nullopt);
  }
};
// query_length, document_length and query_expansion.
TaskLengths ReadTaskLengths(JsonMembers& members);

// How contents of messages are given to a chat template: as strings, as lists, or as the template
// wants them.
enum class MessageFormat : uint8_t { kAuto, kFlat, kStructured };

enum class TransformerTask : uint8_t { kExtractFeatures, kClassify, kFillMask, kGenerate };
// As transformer_task has it: "feature-extraction".
std::string_view TaskName(TransformerTask task);

// sentence_bert_config.json, which has other names for some models.
struct TransformerSettings {
  std::string file;  // "" if the folder has none
  std::optional<size_t> max_seq_length;
  // Texts are made lower case before the tokenizer's own normalizer. false, as in the file, says
  // nothing: the normalizer may do it all the same.
  bool lower_case = false;
  TransformerTask task = TransformerTask::kExtractFeatures;
  // Texts are messages, which a chat template renders.
  std::optional<MessageFormat> messages = {};
  // processing_kwargs pad texts to this many tokens, or with 0 to the tokenizer's maximum.
  std::optional<size_t> padding = {};
  TaskLengths lengths = {};
};

// A Router whose texts are documents, by the transformer, or queries, by static weights.
struct SparseRoutes {
  std::string
      query_path;  // the folder of the queries' module, within the model's; empty: no Router
  std::string by_default;  // "query" or "document"; empty: none
};

// A model's folder, as far as the small files say.
struct ModelFolder {
  FolderKind kind = FolderKind::kCheckpoint;
  std::vector<ModuleEntry> modules = {};  // of modules.json; a Router's documents' in its place
  std::string path = {};                  // of the transformer, within the model's folder
  Folder folder;                          // the same, opened
  TransformerSettings settings = {};
  SparseRoutes routes = {};
  bool makes_features = false;  // as models/family.h ModelModalities
  std::optional<Model2VecConfig> model2vec = {};

  bool has_modules() const { return !modules.empty(); }
  // The modules after the first one.
  std::span<const ModuleEntry> behind() const {
    return std::span(modules).subspan(has_modules() ? 1 : 0);
  }
};

// A module by its class in Python and its folder within the model's; errors begin with `where`.
// kUnsupported for an unknown class.
Result<ModuleEntry> MakeModule(const std::string& type, const std::string& path,
                               const std::string& where);
// The modules of documents. kUnsupported for other routes than SparseRoutes'.
Result<std::vector<ModuleEntry>> ReadRouter(const std::string& path, SparseRoutes* routes,
                                            const FolderReading& reading);

// Reads modules.json and the transformer's settings, which do not count without modules.json, and
// decides the kind.
Result<ModelFolder> FindFolder(FolderUse use, const FolderReading& reading);

// Whether the model gets type ids. If not, all are 0: without a table for them, without
// token_type_ids among model_input_names of tokenizer_config.json, and without that key by the
// tokenizer's class (tokenizer_class.h).
Result<bool> ReadUsesTypeIds(const ModelFolder& transformer, size_t type_vocab_size,
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
// More than the model's is capped with a note; of an option it is kInvalidArgument, as is too
// little for the special tokens. Where padding needs no position, sentence-transformers computes
// more tokens than the cap: another note.
Result<size_t> ChooseMaxLength(const LengthSources& sources, const FolderReading& reading);

// A folder's tokenizer and how its model wants texts. The folder need not have a model, and the
// model's family need not be one that encore knows.
struct FolderTokenizer {
  Tokenizer tokenizer;
  size_t max_length = 0;  // tokens that a text may have; 0: no limit is known
  bool type_ids = false;  // the model is given type ids, as far as the tokenizer's files say
  bool add_special_tokens = true;  // the model is given the tokenizer's template with a text
};
Result<FolderTokenizer> OpenFolderTokenizer(const std::string& folder, bool ignore_unknown_keys);

inline constexpr std::string_view kSentenceConfigFile = "config_sentence_transformers.json";

struct SentenceConfig {
  std::vector<std::pair<std::string, std::string>> prompts;  // names and texts, in the file's order
  std::optional<std::string> default_prompt_name;            // one of them
  std::optional<size_t> truncate_dim;
  size_t max_active_dims = 0;                // of sparse vectors; 0: all
  std::optional<std::string> activation_fn;  // of a cross-encoder's scores

  // The text of this name, or null.
  const std::string* FindPrompt(std::string_view name) const;
};
// As sentence-transformers, which ignores the file without modules.json. ReadLateSettings reads the
// keys of late interaction.
Result<SentenceConfig> ReadSentenceConfig(const ModelFolder& found, const FolderReading& reading);

// What PyLate wrote into config_sentence_transformers.json.
inline constexpr std::string_view kPyLateKeys[] = {"query_length",
                                                   "document_length",
                                                   "query_expansion",
                                                   "do_query_expansion",
                                                   "attend_to_expansion_tokens",
                                                   "attend_to_mask_tokens",
                                                   "query_prefix",
                                                   "document_prefix",
                                                   "skiplist_words"};

// The modes of a Pooling module in the order in which their vectors are concatenated: booleans in
// PoolingMode's order, a list in its own. And whether a prompt's tokens count.
struct PoolingSettings {
  std::vector<PoolingMode> modes;
  bool include_prompt = true;
};
// `given` replaces the folder's unless it is empty. Without a module: the last token of a causal
// language model, else the mean.
Result<PoolingSettings> ReadPooling(const ModuleEntry* module, size_t d_model,
                                    const std::vector<PoolingMode>& given,
                                    const FolderReading& reading);

// activation(linear(x)), to which with use_residual x is added, or residual(x) where the width
// changes.
struct Dense {
  PackedLinear linear;
  const ActivationRow* activation = nullptr;  // never null once it was read
  bool use_residual = false;
  std::optional<PackedLinear> residual = {};
};
// Reads the module's config.json and model.safetensors in `path` and packs its weights. `width` is
// that of the module's input, vectors of texts or of tokens.
Result<Dense> ReadDense(const std::string& path, size_t width, VectorsOf what,
                        const FolderReading& reading);

// Whether a Normalize module in `path`, with the few settings that it may have, has an effect: in a
// model of late interaction, one of the vectors of texts has none.
Result<bool> ReadNormalize(const std::string& path, VectorsOf what, const FolderReading& reading);

// A LayerNorm module: weight and bias [width].
Result<LoadedNorm> ReadLayerNorm(const std::string& path, size_t width,
                                 const FolderReading& reading);
// A Dropout module, which does nothing when nobody trains.
Status CheckDropout(const std::string& path, const FolderReading& reading);

// The function between a classification head and its scores, as in sentence-transformers'
// CrossEncoder: activation_fn of config_sentence_transformers.json, else of config.json's
// sentence_transformers, else its sbert_ce_default_activation_function, else the sigmoid for one
// label and the identity for more. `path` is the Transformer module's folder.
Result<const ActivationRow*> ReadScoreActivation(const std::string& path,
                                                 const SentenceConfig& config, size_t labels,
                                                 const FolderReading& reading);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_FOLDER_FILES_H_
