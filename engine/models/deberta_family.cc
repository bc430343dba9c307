// SPDX-License-Identifier: Apache-2.0
//
// DeBERTa v2 and v3, mDeBERTa: BERT's layer with relative embeddings in its attention, and in the
// xlarge models a convolution after the first layer.

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

#define ENCORE_DEBERTA_SELF "encoder.layer.{N}.attention.self."
constexpr LayerModule kLayer[] = {
    {ENCORE_DEBERTA_SELF "query_proj", &W::q_proj},
    {ENCORE_DEBERTA_SELF "key_proj", &W::k_proj},
    {ENCORE_DEBERTA_SELF "value_proj", &W::v_proj},
    {"encoder.layer.{N}.attention.output.dense", &W::out_proj},
    {"encoder.layer.{N}.attention.output.LayerNorm", &W::norm1},
    {"encoder.layer.{N}.intermediate.dense", &W::linear1},
    {"encoder.layer.{N}.output.dense", &W::linear2},
    {"encoder.layer.{N}.output.LayerNorm", &W::norm2},
};
// These as the keys have them.
constexpr LayerModule kTable = {"encoder.rel_embeddings", &W::relative_embeddings, false};
constexpr LayerModule kTableNorm = {"encoder.LayerNorm", &W::relative_norm};
constexpr LayerModule kConvolution = {"encoder.conv.conv", &W::convolution};
constexpr LayerModule kConvolutionNorm = {"encoder.conv.LayerNorm", &W::convolution_norm};
constexpr LayerModule kPosQuery = {ENCORE_DEBERTA_SELF "pos_query_proj", &W::pos_q_proj};
constexpr LayerModule kPosKey = {ENCORE_DEBERTA_SELF "pos_key_proj", &W::pos_k_proj};
#undef ENCORE_DEBERTA_SELF

// "p2c|c2p", "layer_norm|none", or a list: the words, in lower case where they are in a string.
std::vector<std::string> ReadWords(JsonMembers* config, std::string_view key) {
  std::vector<std::string> words;
  const JsonValue* value = config->Find(key);
  if (value == nullptr || value->is_null()) return words;
  if (value->is_array()) {
    for (const JsonValue& item : value->items()) {
      if (!item.is_string()) config->Refuse(key, "words");
      words.push_back(item.text());
    }
    return words;
  }
  std::string_view text = value->text();
  if (!value->is_string()) config->Refuse(key, "words with | between");
  while (!text.empty()) {
    const size_t end = std::min(text.find('|'), text.size());
    std::string& word = words.emplace_back();
    for (const char c : text.substr(0, end)) {
      const bool upper = c >= 'A' && c <= 'Z';
      if (c != ' ') word.push_back(upper ? static_cast<char>(c + ('a' - 'A')) : c);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool Has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A size, or nothing where it is not above 0.
size_t ReadAboveZero(JsonMembers* config, std::string_view key) {
  const double value = config->Number(key, -1);
  if (value < 1) return 0;
  return ReadExtent(config, {key, 1});
}

void ReadRelative(JsonMembers* config, const std::vector<std::string>& terms, ModelSpec* spec) {
  RelativeConfig relative;
  relative.content_to_position = Has(terms, "c2p");
  relative.position_to_content = Has(terms, "p2c");
  relative.own_projections = !config->Bool("share_att_key", false);
  relative.buckets = ReadAboveZero(config, "position_buckets");
  relative.max_distance = ReadAboveZero(config, "max_relative_positions");
  if (relative.max_distance == 0) relative.max_distance = spec->embeddings.max_positions;
  constexpr size_t kMost = size_t{1} << 20;
  if (relative.buckets == 1 || relative.buckets > kMost ||
      relative.max_distance <= relative.buckets / 2 + 1 || relative.max_distance > kMost) {
    config->Refuse("position_buckets", "none, or 2 to 2^20, with max_relative_positions (" +
                                           std::to_string(relative.max_distance) +
                                           ") above half of it and 1");
  }
  const bool norm = Has(ReadWords(config, "norm_rel_ebd"), "layer_norm");
  if (norm) relative.norm = spec->encoder.layers.front().norm;
  if (!config->ok() || terms.empty()) return;
  for (LayerConfig& layer : spec->encoder.layers) layer.relative = relative;
  spec->layer_modules.push_back(kTable);
  if (norm) spec->layer_modules.push_back(kTableNorm);
  if (!relative.own_projections) return;
  if (relative.position_to_content) spec->layer_modules.push_back(kPosQuery);
  if (relative.content_to_position) spec->layer_modules.push_back(kPosKey);
}

// After the first layer, of the embeddings' output.
Status ReadConvolution(JsonMembers* config, ModelSpec* spec) {
  const size_t kernel = ReadAboveZero(config, "conv_kernel_size");
  if (kernel == 0) {
    for (const char* const key : {"conv_act", "conv_groups"}) config->Ignore(key);
    return {};
  }
  const size_t width = spec->encoder.d_model;
  if (kernel % 2 == 0 || kernel > kMaxConvolution) {
    config->Refuse("conv_kernel_size",
                   "0, or an odd number up to " + std::to_string(kMaxConvolution));
  }
  const size_t groups = ReadExtent(config, {"conv_groups", 1});
  if (groups == 0 || width % groups != 0) {
    config->Refuse("conv_groups", "a divisor of hidden_size, " + std::to_string(width));
  }
  ENCORE_RETURN_IF_ERROR(config->status());
  // transformers takes tanh where the key is absent.
  ConvolutionConfig convolution{.kernel = kernel};
  if (config->String("conv_act", "tanh") == "tanh") {
    return Status(ErrorCode::kUnsupported,
                  config->where() + ": conv_act is " +
                      (config->Has("conv_act") ? "'tanh'" : "absent, which means tanh") +
                      "; encore has no convolution with it");
  }
  ENCORE_RETURN_IF_ERROR(ReadActivation(config, {"conv_act", "gelu"}, &convolution.activation));
  ENCORE_RETURN_IF_ERROR(config->status());
  spec->encoder.layers.front().convolution = convolution;
  spec->layer_modules.push_back(kConvolution);
  spec->layer_modules.back().groups = groups;
  spec->layer_modules.push_back(kConvolutionNorm);
  return {};
}

Status ReadHeads(JsonMembers* config, ModelSpec* spec) {
  const size_t d_model = spec->encoder.d_model;
  ENCORE_RETURN_IF_ERROR(
      ReadHeadActivation(config, {"pooler_hidden_act", "gelu"}, &spec->head.activation));
  if (config->Size("pooler_hidden_size", d_model) != d_model) {
    config->Refuse("pooler_hidden_size", std::to_string(d_model) + ", as hidden_size says");
  }
  if (config->Bool("legacy", true)) return {};
  LanguageHeadSpec& language = spec->language;
  language.dense = "lm_predictions.lm_head.dense";
  language.norm = "lm_predictions.lm_head.LayerNorm";
  language.decoder = "lm_predictions.lm_head";  // a bias alone
  language.bias = {};
  language.always_tied = true;
  // transformers multiplies states of hidden_size by the table of words.
  if (spec->embeddings.width != d_model) language = {};
  return {};
}

Status ConfigureDeberta(JsonMembers* config, ModelSpec* spec) {
  EmbeddingSpec& e = spec->embeddings;
  if (!config->Bool("position_biased_input", true)) {
    e.position_rule = PositionRule::kNone;
    e.any_length = true;
  }
  if (e.width == spec->encoder.d_model) {
    e.projection = {};
    e.projection_first = false;
  }
  // transformers has the key, but projects attention's output from hidden_size all the same.
  const size_t head_size = spec->encoder.layers.front().head_size;
  if (config->Size("attention_head_size", head_size) != head_size) {
    config->Refuse("attention_head_size", std::to_string(head_size) + ", a head's share");
  }
  const std::vector<std::string> terms = ReadWords(config, "pos_att_type");
  for (const std::string& term : terms) {
    if (term != "c2p" && term != "p2c") config->Refuse("pos_att_type", "c2p, p2c or both");
  }
  // All terms count for the scale, with relative attention or without.
  const auto scaled =
      static_cast<double>(1 + size_t{Has(terms, "c2p")} + size_t{Has(terms, "p2c")});
  for (LayerConfig& layer : spec->encoder.layers) {
    layer.attention_scale = 1 / std::sqrt(static_cast<double>(head_size) * scaled);
  }
  if (config->Bool("relative_attention", false)) {
    ReadRelative(config, terms, spec);
  } else {
    for (const char* const key :
         {"share_att_key", "position_buckets", "max_relative_positions", "norm_rel_ebd"}) {
      config->Ignore(key);
    }
  }
  ENCORE_RETURN_IF_ERROR(config->status());
  ENCORE_RETURN_IF_ERROR(ReadConvolution(config, spec));
  return ReadHeads(config, spec);
}

constexpr Family kDebertaFamilies[] = {
    // He et al. 2020, arXiv:2006.03654, and 2021, arXiv:2111.09543. The ignored keys are of
    // training, and which head of masked words the model has.
    {.model_types = "deberta-v2",
     .prefixes = "deberta.",
     .harmless_tensors = "embeddings.position_ids embeddings.position_embeddings pooler. cls. "
                         "lm_predictions. mask_predictions. qa_outputs.",
     .keys = {.embedding_width = {"embedding_size"},
              .types = {"type_vocab_size", 0},
              .min_types = 0,
              .epsilon = {"layer_norm_eps", 1e-7}},
     .own_keys = "attention_head_size conv_act conv_groups conv_kernel_size max_relative_positions "
                 "norm_rel_ebd pooler_hidden_act pooler_hidden_size pos_att_type "
                 "position_biased_input position_buckets "
                 "relative_attention share_att_key",
     .ignored_keys = "cls_dropout legacy pooler_dropout vocab_type z_steps",
     .modules = {kLayer},
     .embeddings = {.word = "embeddings.word_embeddings",
                    .type = "embeddings.token_type_embeddings",
                    .position = "embeddings.position_embeddings",
                    .norm = "embeddings.LayerNorm",
                    .projection = "embeddings.embed_proj",
                    .projection_bias = false,
                    .projection_first = true},
     .head = {.dense = "pooler.dense",
              .activation = &ActivationRowOf(Activation::kGelu),
              .out = "classifier"},
     .token_head = kTokenHead,
     .language = kBertLanguage,
     .configure = ConfigureDeberta},
};

}  // namespace

std::span<const Family> DebertaFamilies() { return kDebertaFamilies; }

}  // namespace encore::internal
