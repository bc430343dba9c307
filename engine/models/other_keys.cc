// SPDX-License-Identifier: Apache-2.0
//
// The keys that mean the same, or nothing, in every family, and what becomes of the rest.

#include "engine/models/other_keys.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "engine/base/quoted.h"

namespace encore::inline v0_1::internal {
namespace {

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

// Keys that change what some families compute.
constexpr std::string_view kOfFamilies[] = {
    "_sliding_window_pattern",
    "activation",
    "activation_function",
    "attention_bias",
    "classifier_activation",
    "classifier_bias",
    "classifier_pooling",
    "clf_pooling",
    "d_ff",
    "d_kv",
    "d_model",
    "dim",
    "embedding_size",
    "feed_forward_proj",
    "feed_forward_type",
    "global_attn_every_n_layers",
    "global_rope_theta",
    "head_dim",
    "hidden_act",
    "hidden_activation",
    "hidden_dim",
    "hidden_size",
    "inner_group_num",
    "intermediate_size",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "layer_types",
    "local_attention",
    "local_rope_theta",
    "max_position_embeddings",
    "max_trained_positions",
    "max_window_layers",
    "mlp_bias",
    "mlp_fc1_bias",
    "mlp_fc2_bias",
    "moe_every_n_layers",
    "n_embd",
    "n_head",
    "n_heads",
    "n_inner",
    "n_layer",
    "n_layers",
    "n_positions",
    "norm_bias",
    "norm_eps",
    "num_attention_heads",
    "num_heads",
    "num_hidden_groups",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_layers",
    "partial_rotary_factor",
    "qkv_proj_bias",
    "query_pre_attn_scalar",
    "relative_attention_max_distance",
    "relative_attention_num_buckets",
    "rms_norm_eps",
    "rope_local_base_freq",
    "rope_theta",
    "rotary_emb_base",
    "rotary_scaling_factor",
    "sinusoidal_pos_embds",
    "sliding_window",
    "sliding_window_pattern",
    "task_type_vocab_size",
    "type_vocab_size",
    "use_bidirectional_attention",
    "use_sliding_window",
    "vocab_size",
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

template <size_t N>
bool Has(const std::string_view (&keys)[N], const std::string& key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

Status CheckKey(const std::string& where, const std::string& key, const JsonValue& value,
                bool ignore_unknown, std::vector<Decision>* decisions) {
  if (Has(kHarmless, key)) return {};
  for (const OnlyValue& only : kOnlyValues) {
    if (only.key != key) continue;
    if (Holds(only.value, value)) return {};
    return NotOnly(where, key, value, only);
  }
  if (Has(kOfFamilies, key) && !ignore_unknown) {
    return InvalidArgument(where + ": " + Quoted(key) + " is " + value.Described() +
                           ", a key that other families read and this one does not; wanted none "
                           "of these (the option ignore_unknown_keys ignores them)");
  }
  decisions->push_back({"ignored", "key " + Quoted(key) + ", " + value.Described(), where});
  return {};
}

}  // namespace

Status CheckOtherKeys(const JsonValue& object, JsonMembers* config, bool ignore_unknown,
                      std::vector<Decision>* decisions) {
  for (const std::string& key : config->Unread()) {
    Status s = CheckKey(config->where(), key, *object.Find(key), ignore_unknown, decisions);
    if (!s.ok()) return s;
  }
  return {};
}

}  // namespace encore::internal
