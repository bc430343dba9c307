// SPDX-License-Identifier: Apache-2.0
//
// Keys that mean the same, or nothing, in every family, and those of other families.

#include "engine/models/config_keys.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "engine/base/number_text.h"
#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"

namespace encore::inline v0_1::internal {
namespace {

// Keys that change nothing of what an encoder computes from token ids. id2label and label2id are
// the head's (classifier.h).
constexpr WordList kHarmless =
    "_attn_implementation_autoset _commit_hash _name_or_path _num_labels attention_dropout "
    "attention_probs_dropout_prob attn_implementation bos_token_id chunk_size_feed_forward "
    "classifier_dropout cls_token_id decoder_start_token_id directionality dropout dtype "
    "eos_token_id finetuning_task gradient_checkpointing hidden_dropout_prob id2label "
    "initializer_factor initializer_range keys_to_ignore_at_inference label2id mask_token_id "
    "model_type output_attentions output_hidden_states output_past pad_token_id pooler_fc_size "
    "pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type prefix "
    "qa_dropout return_dict sep_token_id seq_classif_dropout task_specific_params "
    "tf_legacy_loss tie_encoder_decoder tie_word_embeddings tokenizer_class torch_dtype "
    "torchscript transformers_version unk_token_id use_bfloat16 use_cache";
// Of generation, which older versions wrote into every configuration.
constexpr WordList kOfGeneration =
    "bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping "
    "encoder_no_repeat_ngram_size exponential_decay_length_penalty forced_bos_token_id "
    "forced_eos_token_id length_penalty max_length min_length no_repeat_ngram_size "
    "num_beam_groups num_beams num_return_sequences output_scores remove_invalid_values "
    "repetition_penalty return_dict_in_generate suppress_tokens temperature top_k top_p "
    "typical_p";
// Of sentence-transformers' CrossEncoder (engine/text).
constexpr WordList kOfCrossEncoder = "sbert_ce_default_activation_function sentence_transformers";

// Keys that have one value that encore computes.
constexpr SupportedValue kSupportedValues[] = {
    {"add_cross_attention", false},
    {"attn_logit_softcapping", {}},
    {"auto_map", {}},  // code of the folder's own
    {"causal", false},
    {"compression_config", {}},
    {"cross_attention_hidden_size", {}},
    {"is_causal", false},
    {"is_decoder", false},
    {"is_encoder_decoder", false},
    {"layer_norm_type", "layer_norm"},
    {"logn_attention_clip1", false},
    {"logn_attention_scale", false},
    {"pack_qkv", true},
    {"parallel_block", false},
    {"parallel_block_tied_norm", false},
    {"per_layer_config", {}},
    {"position_embedding_type", "absolute"},
    {"prenorm", false},
    {"pruned_heads", {}},
    {"quantization_config", {}},
    {"rope_parameters", {}},
    {"rope_scaling", {}},
    {"rotary_emb_fraction", 1.0},
    {"rotary_emb_interleaved", false},
    {"rotary_emb_scale_base", {}},
    {"scale_attn_by_inverse_layer_idx", false},
    {"scale_attn_weights", true},
    {"use_rms_norm", false},
    {"use_task_id", false},
};

bool Holds(const SupportedValue& supported, const JsonValue& value) {
  if (value.is_null()) return true;
  if (const bool* b = std::get_if<bool>(&supported.value)) {
    return value.is_bool() && value.boolean() == *b;
  }
  if (const double* number = std::get_if<double>(&supported.value)) {
    return value.is_number() && value.number() == *number;
  }
  if (const auto* text = std::get_if<std::string_view>(&supported.value)) {
    return value.is_string() && value.text() == *text;
  }
  return value.is_object() && value.members().empty();
}

std::string Wanted(const SupportedValue& supported) {
  if (const bool* b = std::get_if<bool>(&supported.value)) return *b ? "true" : "false";
  if (const double* number = std::get_if<double>(&supported.value)) return NumberText(*number);
  if (const auto* text = std::get_if<std::string_view>(&supported.value)) return Quoted(*text);
  return "null or nothing";
}

Status CheckKey(const std::string& where, const std::string& key, const JsonValue& value,
                bool ignore_foreign, Side side, std::vector<Decision>* decisions) {
  for (const WordList harmless : {kHarmless, kOfGeneration, kOfCrossEncoder}) {
    if (harmless.Has(key)) return {};
  }
  const auto* supported =
      std::find_if(std::begin(kSupportedValues), std::end(kSupportedValues),
                   [&](const SupportedValue& known) { return known.key == key; });
  if (supported != std::end(kSupportedValues)) return CheckSupported(where, *supported, value);
  if ((IsFamilyKey(key) || IsFamilyKey(key, side)) && !ignore_foreign) {
    return InvalidArgument(where + ": " + Quoted(key) + " is " + value.Described() +
                           ", a key that other families read and this one does not; wanted none "
                           "of these (the option ignore_unknown_keys ignores them)");
  }
  decisions->push_back({"ignored", "key " + Quoted(key) + ", " + value.Described(), where});
  return {};
}

}  // namespace

Status CheckSupported(const std::string& where, const SupportedValue& supported,
                      const JsonValue& value) {
  if (Holds(supported, value)) return {};
  return Status(ErrorCode::kUnsupported, where + ": " + std::string(supported.key) + " is " +
                                             value.Described() + "; encore computes " +
                                             Wanted(supported) + " only" +
                                             std::string(supported.why));
}

Status CheckOtherKeys(const JsonValue& object, JsonMembers* config, bool ignore_foreign,
                      std::vector<Decision>* decisions, Side side) {
  for (const std::string& key : config->Unread()) {
    ENCORE_RETURN_IF_ERROR(
        CheckKey(config->where(), key, *object.Find(key), ignore_foreign, side, decisions));
  }
  return {};
}

}  // namespace encore::internal
