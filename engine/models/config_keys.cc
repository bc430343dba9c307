// SPDX-License-Identifier: Apache-2.0
//
// Keys of config.json.

#include "engine/models/config_keys.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "engine/base/quoted.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kMaxExtent = (size_t{1} << 31) - 1;
constexpr size_t kMaxLayers = 10000;

size_t CheckRange(JsonMembers* config, std::string_view key, size_t value, size_t max) {
  if (config->ok() && (value < 1 || value > max)) {
    config->Refuse(key, "a whole number of 1 .. " + std::to_string(max));
  }
  return config->ok() ? value : 1;
}

// transformers' names (activations.py): several name the tanh form, computed in other ways.
constexpr std::pair<std::string_view, Activation> kActivations[] = {
    {"gelu", Activation::kGelu},
    {"gelu_python", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_accurate", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_python_tanh", Activation::kGeluTanh},
    {"relu", Activation::kRelu},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"quick_gelu", Activation::kQuickGelu},
};

// Keys that change nothing of what an encoder computes from token ids. id2label and label2id are
// the head's (classifier.h), the last two groups those of generation and of sentence-transformers
// (engine/text).
constexpr std::string_view kHarmless[] = {
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "_num_labels",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_implementation",
    "bos_token_id",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "cls_token_id",
    "decoder_start_token_id",
    "directionality",
    "dropout",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_dropout_prob",
    "id2label",
    "initializer_factor",
    "initializer_range",
    "keys_to_ignore_at_inference",
    "label2id",
    "mask_token_id",
    "model_type",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "prefix",
    "problem_type",
    "qa_dropout",
    "return_dict",
    "sep_token_id",
    "seq_classif_dropout",
    "task_specific_params",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tie_word_embeddings",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "unk_token_id",
    "use_bfloat16",
    "use_cache",
    // Generation, which older versions wrote into every configuration.
    "bad_words_ids",
    "begin_suppress_tokens",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_scores",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict_in_generate",
    "suppress_tokens",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    // sentence-transformers' CrossEncoder.
    "sbert_ce_default_activation_function",
    "sentence_transformers",
};

// Keys that have one value that encore computes, or are absent or null.
enum class Only : uint8_t { kFalse, kTrue, kOne, kEmpty, kAbsolute, kLayerNorm };
struct OnlyValue {
  std::string_view key;
  Only value;
};
constexpr OnlyValue kOnlyValues[] = {
    {"add_cross_attention", Only::kFalse},
    {"attn_logit_softcapping", Only::kEmpty},
    {"auto_map", Only::kEmpty},  // code of the folder's own
    {"causal", Only::kFalse},
    {"compression_config", Only::kEmpty},
    {"cross_attention_hidden_size", Only::kEmpty},
    {"is_decoder", Only::kFalse},
    {"is_encoder_decoder", Only::kFalse},
    {"layer_norm_type", Only::kLayerNorm},
    {"logn_attention_clip1", Only::kFalse},
    {"logn_attention_scale", Only::kFalse},
    {"pack_qkv", Only::kTrue},
    {"parallel_block", Only::kFalse},
    {"parallel_block_tied_norm", Only::kFalse},
    {"position_embedding_type", Only::kAbsolute},
    {"prenorm", Only::kFalse},
    {"pruned_heads", Only::kEmpty},
    {"quantization_config", Only::kEmpty},
    {"rope_parameters", Only::kEmpty},
    {"rope_scaling", Only::kEmpty},
    {"rotary_emb_fraction", Only::kOne},
    {"rotary_emb_interleaved", Only::kFalse},
    {"rotary_emb_scale_base", Only::kEmpty},
    {"scale_attn_by_inverse_layer_idx", Only::kFalse},
    {"scale_attn_weights", Only::kTrue},
    {"use_rms_norm", Only::kFalse},
    {"use_task_id", Only::kFalse},
};

bool IsText(const JsonValue& value, std::string_view text) {
  return value.is_string() && value.text() == text;
}

bool Holds(Only wanted, const JsonValue& value) {
  if (value.is_null()) return true;
  switch (wanted) {
    case Only::kFalse:
      return value.is_bool() && !value.boolean();
    case Only::kTrue:
      return value.is_bool() && value.boolean();
    case Only::kOne:
      return value.is_number() && value.number() == 1;
    case Only::kEmpty:
      return value.is_object() && value.members().empty();
    case Only::kAbsolute:
      return IsText(value, "absolute");
    case Only::kLayerNorm:
      return IsText(value, "layer_norm");
  }
  return false;
}

std::string_view Wanted(Only value) {
  switch (value) {
    case Only::kFalse:
      return "false";
    case Only::kTrue:
      return "true";
    case Only::kOne:
      return "1";
    case Only::kEmpty:
      return "null or nothing";
    case Only::kAbsolute:
      return "'absolute'";
    case Only::kLayerNorm:
      return "'layer_norm'";
  }
  return "";
}

Status NotOnly(const std::string& where, const std::string& key, const JsonValue& value,
               const OnlyValue& only) {
  return Status(ErrorCode::kUnsupported, where + ": " + key + " is " + value.Described() +
                                             "; encore computes " +
                                             std::string(Wanted(only.value)) + " only");
}

Status CheckKey(const std::string& where, const std::string& key, const JsonValue& value,
                bool ignore_unknown, std::vector<Decision>* decisions) {
  if (std::find(std::begin(kHarmless), std::end(kHarmless), key) != std::end(kHarmless)) return {};
  for (const OnlyValue& only : kOnlyValues) {
    if (only.key != key) continue;
    if (Holds(only.value, value)) return {};
    return NotOnly(where, key, value, only);
  }
  if (!ignore_unknown) {
    return InvalidArgument(where + ": " + Quoted(key) + " is " + value.Described() +
                           ", a key that encore does not know and that may change the result; "
                           "wanted none of these (the option ignore_unknown_keys ignores them)");
  }
  decisions->push_back({"ignored", "key " + Quoted(key) + ", " + value.Described(), where});
  return {};
}

}  // namespace

size_t ReadExtent(JsonMembers* config, std::string_view key) {
  return CheckRange(config, key, config->RequiredSize(key), kMaxExtent);
}
size_t ReadExtent(JsonMembers* config, std::string_view key, size_t absent) {
  return CheckRange(config, key, config->Size(key, absent), kMaxExtent);
}
size_t ReadLayers(JsonMembers* config, std::string_view key) {
  return CheckRange(config, key, config->RequiredSize(key), kMaxLayers);
}

size_t ReadHeads(JsonMembers* config, std::string_view key, std::string_view width_key,
                 size_t width) {
  const size_t heads = ReadExtent(config, key);
  if (width % heads != 0) {
    config->Refuse(key, "a divisor of " + std::string(width_key) + " " + std::to_string(width));
  }
  return heads;
}

size_t ReadKvHeads(JsonMembers* config, size_t heads) {
  const size_t kv_heads = ReadExtent(config, "num_key_value_heads", heads);
  if (heads % kv_heads != 0) {
    config->Refuse("num_key_value_heads", "a divisor of the " + std::to_string(heads) + " heads");
  }
  return config->ok() ? kv_heads : 1;
}

size_t ReadTypes(JsonMembers* config, size_t absent) {
  const size_t types = config->Size("type_vocab_size", absent);
  if (types > kMaxExtent) config->Refuse("type_vocab_size", "a number below 2^31");
  return config->ok() ? types : 0;
}

std::vector<bool> ReadSlidingLayers(JsonMembers* config, size_t layers,
                                    const std::function<bool(size_t)>& absent) {
  constexpr std::string_view kKey = "layer_types";
  std::vector<bool> sliding(layers);
  if (!config->Has(kKey)) {
    for (size_t i = 0; i < layers; ++i) sliding[i] = absent(i);
    return sliding;
  }
  const JsonValue& types = config->RequiredArray(kKey);
  if (!config->ok()) return sliding;
  const std::string wanted =
      "'full_attention' or 'sliding_attention' for each of " + std::to_string(layers) + " layers";
  if (types.items().size() != layers) config->Refuse(kKey, wanted);
  for (size_t i = 0; i < layers && config->ok(); ++i) {
    const JsonValue& type = types.items()[i];
    const bool slides = type.is_string() && type.text() == "sliding_attention";
    if (!slides && !(type.is_string() && type.text() == "full_attention")) {
      config->Refuse(kKey, wanted);
    }
    sliding[i] = slides;
  }
  return sliding;
}

void IgnoreKeys(JsonMembers* config, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) config->Ignore(key);
}

double ReadEpsilon(JsonMembers* config, std::string_view key, double absent) {
  const double epsilon = config->Number(key, absent);
  if (!(epsilon >= 0) || !std::isfinite(epsilon)) config->Refuse(key, "a number of at least 0");
  return epsilon;
}

Status ReadActivation(JsonMembers* config, std::string_view key, std::string_view absent,
                      Activation* activation) {
  const std::string name = config->String(key, absent);
  if (!config->ok()) return config->status();
  std::string all;
  for (const auto& [known, value] : kActivations) {
    if (name == known) {
      *activation = value;
      return {};
    }
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  return Status(ErrorCode::kUnsupported, config->where() + ": " + std::string(key) + " is " +
                                             Quoted(name) + "; wanted one of " + all);
}

Status CheckOtherKeys(const JsonValue& object, JsonMembers* config, bool ignore_unknown,
                      std::vector<Decision>* decisions) {
  for (const std::string& key : config->Unread()) {
    Status s = CheckKey(config->where(), key, *object.Find(key), ignore_unknown, decisions);
    if (!s.ok()) return s;
  }
  return {};
}

}  // namespace encore::internal
