// SPDX-License-Identifier: Apache-2.0
//
// A family of models as a row of a table: which config.json it answers to, its keys, tensors,
// embeddings and head. And the spec of one model, which a row and a config.json make.

#ifndef ENCORE_ENGINE_MODELS_FAMILY_H_
#define ENCORE_ENGINE_MODELS_FAMILY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "encore/encoder.h"
#include "encore/ops.h"
#include "encore/status.h"
#include "encore/tokenizer.h"
#include "engine/base/activations.h"
#include "engine/io/folder.h"
#include "engine/io/json_members.h"
#include "engine/nn/layer_tensors.h"

namespace encore::inline v0_1::internal {

// Words with blanks between, such as names of keys.
class WordList {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a row of a table has the text
  constexpr WordList(std::string_view text = {}) : text_(text) {}
  constexpr WordList(const char* text) : text_(text) {}
  // NOLINTEND(google-explicit-constructor)
  class Iterator {
   public:
    constexpr explicit Iterator(std::string_view text) : text_(text) { SkipBlanks(); }
    constexpr std::string_view operator*() const { return text_.substr(0, text_.find(' ')); }
    constexpr Iterator& operator++() {
      text_.remove_prefix((**this).size());
      SkipBlanks();
      return *this;
    }
    constexpr bool operator!=(std::default_sentinel_t /*end*/) const { return !text_.empty(); }

   private:
    constexpr void SkipBlanks() {
      text_.remove_prefix(std::min(text_.find_first_not_of(' '), text_.size()));
    }
    std::string_view text_;
  };
  constexpr Iterator begin() const { return Iterator(text_); }
  constexpr std::default_sentinel_t end() const { return {}; }
  constexpr bool empty() const { return text_.empty(); }
  constexpr std::string_view first() const { return *begin(); }
  constexpr bool Has(std::string_view word) const {
    for (const std::string_view known : *this) {
      if (known == word) return true;
    }
    return false;
  }

 private:
  std::string_view text_;
};

// A module of the file in an encoder layer: `name` + ".weight" and, if it has one, `name` + ".bias"
// go to a member of the layer's weights. "{N}" in a name is the layer's number; layers
// share a tensor whose name has none. A layer without attention_norm has no module of norm1, one
// with experts none of the matrices that these take the place of, and others no experts.
struct LayerModule {
  std::string_view name;
  LayerMember member;
  bool bias = true;
  std::string_view bias_key = {};       // of config.json, which says whether there is one
  std::string_view weight = ".weight";  // what follows the name of a tensor by itself
  // All layers' matrices are one tensor, those of one layer's rows under another's.
  bool stacked = false;
  // Of a convolution, whose tensor is [outputs, d_model / groups, kernel].
  size_t groups = 1;
};

// CLIP's and SigLIP's, on both sides.
inline constexpr LayerModule kClipModules[] = {
    {"encoder.layers.{N}.layer_norm1", &EncoderLayerWeights::norm1},
    {"encoder.layers.{N}.self_attn.q_proj", &EncoderLayerWeights::q_proj},
    {"encoder.layers.{N}.self_attn.k_proj", &EncoderLayerWeights::k_proj},
    {"encoder.layers.{N}.self_attn.v_proj", &EncoderLayerWeights::v_proj},
    {"encoder.layers.{N}.self_attn.out_proj", &EncoderLayerWeights::out_proj},
    {"encoder.layers.{N}.layer_norm2", &EncoderLayerWeights::norm2},
    {"encoder.layers.{N}.mlp.fc1", &EncoderLayerWeights::linear1},
    {"encoder.layers.{N}.mlp.fc2", &EncoderLayerWeights::linear2},
};

enum class PositionRule : uint8_t {
  kNone,      // no table: attention knows positions by itself
  kFromZero,  // a token's place in its sequence
  // pad_token_id + 1 + how many tokens before it are not pad_token_id; a token that is pad_token_id
  // itself has the position pad_token_id. fairseq's models count so.
  kFromPadding,
};

// Of a model that has no limit of its own.
inline constexpr size_t kAnyLength = size_t{1} << 20;

// x = LayerNorm(scale word[id] + type[type id] + position[place] + task[0]), all `width` wide, then
// a linear layer to d_model where there is a projection; or the norm after that. Names are of
// modules with a ".weight" (and ".bias"); an empty one means that the family has no such thing. A
// row has names and rules, sizes come from config.json.
struct EmbeddingSpec {
  size_t width = 0;
  size_t vocab_size = 0;
  std::string_view word = {};
  std::string_view word_alias = {};  // the table's name where the file has none of `word`
  float scale = 1;
  // A token whose row is 0. All rows of its sequence are multiplied by 0.88 / (1 - its share of
  // them), as ESM was trained with 12 % of the tokens dropped so. Nothing: no such token or factor.
  std::optional<size_t> dropped_token = {};
  size_t type_vocab_size = 0;  // 0: no types
  std::string_view type = {};
  size_t max_positions = 0;  // rows of the table; with kNone the tokens that a text has at most
  // With kNone: longer sequences are computed too, where a caller or a file wants them.
  bool any_length = false;
  std::string_view position = {};
  PositionRule position_rule = PositionRule::kFromZero;
  size_t pad_token_id = 0;  // with kFromPadding; a row's 0: that of config.json
  // Ids of images and sounds, whose row is that of pad_token_id.
  std::array<std::optional<size_t>, 3> placeholders = {};
  // A table whose first row is added to every token's sum, after its position.
  std::string_view task = {};
  size_t task_vocab_size = 0;
  double norm_epsilon = 0;
  std::string_view norm = {};
  bool norm_bias = true;
  std::string_view projection = {};
  bool projection_bias = true;
  bool projection_first = false;  // before the norm, which is d_model wide then

  // Tokens that a sequence may have.
  size_t max_tokens() const {
    return any_length ? std::max(max_positions, kAnyLength) : usual_tokens();
  }
  // Tokens that it has at most unless somebody wants more.
  size_t usual_tokens() const {
    return position_rule == PositionRule::kFromPadding ? max_positions - pad_token_id - 1
                                                       : max_positions;
  }
};

// The input of an encoder of pictures: a row for each square patch, by a linear layer of its pixels
// (EmbeddingSpec::word, which the patches' convolution is), and rows of the file before them; then
// `position` and `norm` of EmbeddingSpec. And how the last states become a picture's vector. A row
// has what counts where config.json lacks the sizes. Names are of whole tensors here, but those of
// modules in the second half.
struct PatchSpec {
  size_t image_size = 0;               // of each side of the picture that `position` has rows for
  size_t patch_size = 0;               // 0: the family has no patches
  bool bias = true;                    // of the linear layer
  std::string_view class_token = {};   // the first row; empty: none
  std::string_view second_token = {};  // behind it, with a position too
  std::string_view registers = {};     // behind these, without positions
  size_t num_registers = 0;
  // Positions of another picture's size are interpolated by torch's bicubic: with antialias=True.
  bool antialias = false;

  // The vector is the first row, through those of these that are there: norm, dense with an
  // activation, a linear layer.
  std::string_view norm = {};
  std::string_view dense = {};  // of files that have it
  size_t dense_width = 0;
  const ActivationRow* activation = &kTanhRow;
  std::string_view projection = {};  // without a bias; no name of the base model
  size_t projection_width = 0;
  bool may_lack_projection = false;
  // In place of all these, what a probe sees of all rows by attention, and a feed-forward layer of
  // the layers' sizes: the module that has `probe`, `attention`, `layernorm` and `mlp`.
  std::string_view attention_head = {};

  size_t side() const { return image_size / patch_size; }  // patches of one
  size_t rows_with_position() const {
    return (class_token.empty() ? 0 : 1) + (second_token.empty() ? 0 : 1);
  }
};

// What a model reads, where a folder may have one for each.
enum class Side : uint8_t { kTexts, kPictures };

// A linear layer that each token's last state goes through: [width, d_model].
struct ProjectionSpec {
  std::string_view name = {};  // of its module in the file; empty: none
  size_t width = 0;
  bool bias = false;
};

// The token whose last state is a text's vector, in models of texts and images (transformers:
// get_text_features), through the projection where there is one.
enum class TextPooling : uint8_t {
  kNone,       // the model does not pool, the folder's modules do
  kEosToken,   // the first that is `eos_id`, or the first of all where none is
  kLargestId,  // the first of those with the largest id
  kLastToken,
};
struct TextPoolingSpec {
  TextPooling token = TextPooling::kNone;
  size_t eos_id = 0;  // with kEosToken
};

// Words alone, without positions and norm.
constexpr EmbeddingSpec WordsAlone(std::string_view word, std::string_view alias = {}) {
  return {.word = word,
          .word_alias = alias,
          .any_length = alias.empty(),
          .position_rule = PositionRule::kNone};
}

// What the head of a classifier of pictures reads of the last states.
enum class PictureRows : uint8_t {
  kFirst,
  kPatches,          // their mean
  kFirstAndPatches,  // the first row, and behind it the patches' mean
  kFirstTwo,         // one behind the other
};

// logits = out(norm(activation(dense(x)))), x being one vector of each sequence's hidden states, or
// the hidden state of each token. Without `dense`: out(x).
struct HeadSpec {
  OutputRows rows = OutputRows::kFirst;  // x is such a row, or the mean of all
  // With kLast: x is the last token that is not this one; of a sequence of nothing else, the first.
  std::optional<int32_t> padding = {};
  std::string_view dense = {};
  bool dense_in_base = false;  // `dense` has the base model's prefix, as BERT's pooler
  bool dense_bias = true;
  const ActivationRow* activation = &kTanhRow;  // between the linear layers
  std::string_view norm = {};                   // a LayerNorm; empty: none
  double norm_epsilon = 0;
  bool norm_bias = true;
  std::string_view out = {};  // empty: encore has no head of this family
  bool out_bias = true;
  bool mean_of_logits = false;  // of each token's, in place of those of their mean
  double temperature = 1;       // logits are divided by it
  std::string_view note = {};   // for Describe(), behind what is computed
  std::string_view none = {};   // without `out`: why encore has none, where there is a reason
  // Of pictures, in place of `rows`.
  PictureRows of_picture = PictureRows::kFirst;
  // In files that have both: one's logits of the first row, the other's of the second, their mean.
  std::string_view out_of_first = {}, out_of_second = {};
};

// The head of a masked language model: logits = decoder(norm(activation(dense(x)))). decoder is a
// matrix of its own where the file has one, else the table of words if tie_word_embeddings is true.
// `norm` and `decoder` may have several names, of which the first that the file has counts.
struct LanguageHeadSpec {
  std::string_view dense = {};  // empty: decoder(x)
  bool dense_bias = true;
  // Of activation(second(activation(dense(x)))), without biases: dense makes `inner` elements.
  std::string_view second = {};
  size_t inner = 0;
  const ActivationRow* activation = &ActivationRowOf(Activation::kGelu);
  bool layer_activation = false;  // `activation` is that of the layers
  WordList norm = {};             // empty: none
  double norm_epsilon = 0;        // 0: that of the layers
  bool norm_bias = true;
  WordList decoder = {};       // empty: encore has no head of this family
  bool always_tied = false;    // whatever tie_word_embeddings says
  std::string_view bias = {};  // another name of `decoder`.bias
  bool has_bias = true;
};

inline constexpr LanguageHeadSpec kBertLanguage = {.dense = "cls.predictions.transform.dense",
                                                   .layer_activation = true,
                                                   .norm = "cls.predictions.transform.LayerNorm",
                                                   .decoder = "cls.predictions.decoder",
                                                   .bias = "cls.predictions.bias"};
inline constexpr LanguageHeadSpec kRobertaLanguage = {.dense = "lm_head.dense",
                                                      .norm = "lm_head.layer_norm",
                                                      .decoder = "lm_head.decoder",
                                                      .bias = "lm_head.bias"};

inline constexpr HeadSpec kTokenHead = {.rows = OutputRows::kAll, .out = "classifier"};

// A key of config.json and what counts where it is absent. Without a name that counts always.
template <typename T>
struct ConfigKey {
  std::string_view name = {};
  T absent = {};
};

// A key that has one value that encore computes, beside null and none at all. std::monostate: not
// even that, or an empty object.
struct SupportedValue {
  std::string_view key;
  std::variant<std::monostate, bool, double, std::string_view> value;
  std::string_view why = {};
};

// What counts where config.json lacks a size; 0: it must be there.
struct AbsentSizes {
  size_t d_model = 0;
  size_t layers = 0;
  size_t heads = 0;
  size_t d_ff = 0;
  size_t vocab_size = 0;
};

// Adapters for tasks that may be added to the model's matrices (task_adapter.h).
struct TaskSpec {
  std::vector<std::string> names = {};  // of the bank's order; in folders those that may be there
  bool in_file = false;                 // a bank in the model's own file, or folders of PEFT's
  // Of a bank; folders say it themselves.
  size_t rank = 0;
  double scale = 0;
};

// The keys of what most families have, by BERT's names.
struct FamilyKeys {
  std::string_view d_model = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view d_ff = "intermediate_size";       // without a name: the hook's
  ConfigKey<size_t> kv_heads = {};                   // absent 0, and null: as many as heads
  ConfigKey<size_t> head_size = {};                  // absent 0: d_model / heads
  ConfigKey<size_t> embedding_width = {};            // absent 0: d_model
  ConfigKey<size_t> types = {"type_vocab_size", 2};  // where the embeddings have types
  size_t min_types = 1;                              // 0: there may be none
  ConfigKey<size_t> max_positions = {"max_position_embeddings", 512};
  ConfigKey<double> epsilon = {"layer_norm_eps", 1e-12};
  ConfigKey<std::string_view> activation = {"hidden_act", "gelu"};  // without a name: the hook's
  AbsentSizes absent = {};
};

// What a classifier of sequences was trained for, as config.json's problem_type says.
enum class ProblemType : uint8_t { kUnnamed, kRegression, kSingleLabel, kMultiLabel };

struct ModelSpec;

struct Family {
  WordList model_types;  // the values of config.json's model_type
  // Of families that share a model_type, the one whose config.json has this key, with this value
  // unless that is empty. Without a key: all others.
  std::string_view marker_key = {};
  std::string_view marker_value = {};
  // What may stand before the base model's names, beside nothing and "model.".
  WordList prefixes = {};
  // Names that begin so (after a prefix or without) belong to training or to other tasks.
  WordList harmless_tensors = {};
  // Names that have one of these in them belong to a variant that computes something else.
  WordList foreign_tensors = {};

  FamilyKeys keys = {};
  // Objects of config.json that may have the family's keys, where they are not at its top: the
  // first that is there counts. The keys at the top mean the same as in all families then.
  WordList parts = {};
  // Keys that are refused in other families' config.json, beside those of `keys` and the modules'
  // `bias_key`: what `configure` reads, and what would mean something there.
  WordList own_keys = {};
  // Keys that mean nothing to this family, beside those that mean nothing to any (other_keys.cc).
  WordList ignored_keys = {};
  std::span<const SupportedValue> supported = {};

  // All of them together.
  std::array<std::span<const LayerModule>, 4> modules = {};
  NormPlacement norm_placement = NormPlacement::kPost;
  NormType norm = NormType::kLayerNorm;
  Gate gate = Gate::kNone;
  double rope_theta = 0;  // of all layers alike, where no key says another; 0: none
  // Tensors that have the rotary frequencies, [head size / 2]: the first that the file has counts.
  WordList frequencies = {};
  std::string_view final_norm = {};  // the module after the last layer; empty: none
  EmbeddingSpec embeddings = {};
  PatchSpec patches = {};  // of pictures: `embeddings` has no words and types then
  HeadSpec head = {};
  HeadSpec token_head = {};  // of labels of tokens; empty: encore has none of this family
  LanguageHeadSpec language = {};
  bool tied = true;         // ModelSpec::tied where config.json has no tie_word_embeddings
  bool pools_text = false;  // `configure` or `configure_top` says how
  // In what else the family differs: changes the spec that the row made.
  Status (*configure)(JsonMembers* config, ModelSpec* spec) = nullptr;
  // The same of the keys at the top, for a family with `parts`.
  Status (*configure_top)(JsonMembers* config, ModelSpec* spec) = nullptr;
};

// Everything that config.json says, in encore's terms.
struct ModelSpec {
  std::string model_type = {};
  const Family* family = nullptr;
  EncoderConfig encoder = {};
  std::vector<LayerModule> layer_modules = {};
  bool final_norm_bias = false;
  EmbeddingSpec embeddings = {};
  PatchSpec patches = {};
  HeadSpec head = {};
  HeadSpec token_head = {};
  LanguageHeadSpec language = {};
  bool tied = true;                // the language model's last matrix is the table of words
  bool logit_softcapping = false;  // it is followed by one
  ProjectionSpec projection = {};
  TextPoolingSpec pooling = {};
  TaskSpec tasks = {};
  // Texts are padded to all positions, and the model was trained so.
  bool pads = false;
  std::vector<std::string> architectures = {};  // class names of transformers; may be empty
  // id2label, by id; empty where there is none. An error matters to a head only.
  Result<std::vector<std::string>> labels = std::vector<std::string>();
  std::optional<size_t> num_labels = {};  // where config.json has the key
  // An error matters where it decides what follows the logits.
  Result<ProblemType> problem_type = ProblemType::kUnnamed;
};

inline constexpr const char kConfigFile[] = "config.json";

// The spec of config.json. kNotFound without one; kUnsupported for an unknown family, a folder that
// is an adapter's, and values that encore does not compute; kCorruptData; kInvalidArgument. Appends
// what was decided.
Result<ModelSpec> ReadModelConfig(const Folder& folder, bool ignore_unknown_keys,
                                  std::vector<Decision>* decisions, Side side = Side::kTexts);

// Norms after sublayers, as BERT's; those of them with adapters, with relative embeddings, and
// nomic-bert; norms before sublayers, as ModernBERT's; Llama's layers; ESM and CLIP's text side;
// pictures.
std::span<const Family> PostNormFamilies();
std::span<const Family> JinaV3Families();
std::span<const Family> DebertaFamilies();
std::span<const Family> NomicFamilies();
std::span<const Family> PreNormFamilies();
std::span<const Family> LlamaFamilies();
std::span<const Family> EmbeddingGemma2Families();
std::span<const Family> EsmAndClipFamilies();
std::span<const Family> VisionFamilies();

// Of a folder's model; false where it is not known.
struct ModelModalities {
  bool pools_text = false;  // it makes vectors of texts itself
  bool others = false;  // besides texts it reads images or sounds, which encore does not compute
};
Result<ModelModalities> FindModalities(const Folder& folder);

// The family of a model_type and, where several share it, of a key that marks one; or null.
const Family* FindFamily(std::string_view model_type, const JsonValue& config,
                         Side side = Side::kTexts);
// All model types: "bert, distilbert, ...".
std::string AllModelTypes(Side side = Side::kTexts);
// Whether a family of that side reads the key.
bool IsFamilyKey(std::string_view key, Side side = Side::kTexts);

// Reads the family's keys into the spec. Keys that mean the same in all families, and keys that
// mean nothing here, are left to CheckOtherKeys.
Status ReadFamily(const Family& family, JsonMembers* config, ModelSpec* spec);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_FAMILY_H_
