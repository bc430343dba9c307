// SPDX-License-Identifier: Apache-2.0
//
// Families with norms after sublayers: BERT and those that took its layer.

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/base/quoted.h"
#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

// ---- What several rows share.

constexpr LayerModule kBertAttention[] = {
    {"encoder.layer.{N}.attention.self.query", &W::q_proj},
    {"encoder.layer.{N}.attention.self.key", &W::k_proj},
    {"encoder.layer.{N}.attention.self.value", &W::v_proj},
    {"encoder.layer.{N}.attention.output.dense", &W::out_proj},
    {"encoder.layer.{N}.attention.output.LayerNorm", &W::norm1},
};
constexpr LayerModule kBertNetwork[] = {
    {"encoder.layer.{N}.intermediate.dense", &W::linear1},
    {"encoder.layer.{N}.output.dense", &W::linear2},
    {"encoder.layer.{N}.output.LayerNorm", &W::norm2},
};

constexpr EmbeddingSpec BertEmbeddings(PositionRule rule = PositionRule::kFromZero,
                                       std::string_view projection = {}) {
  return {.word = "embeddings.word_embeddings",
          .type = "embeddings.token_type_embeddings",
          .position = "embeddings.position_embeddings",
          .position_rule = rule,
          .norm = "embeddings.LayerNorm",
          .projection = projection};
}

// Without a table of positions.
constexpr EmbeddingSpec RotaryEmbeddings(std::string_view norm) {
  return {.word = "embeddings.word_embeddings",
          .type = "embeddings.token_type_embeddings",
          .any_length = true,
          .position_rule = PositionRule::kNone,
          .norm = norm};
}

// The classifier goes on from the pooler, which was trained with it.
constexpr HeadSpec PoolerHead(std::string_view pooler = "pooler.dense") {
  return {.dense = pooler, .dense_in_base = true, .out = "classifier"};
}

constexpr HeadSpec TwoLayerHead(const ActivationRow* activation = &kTanhRow) {
  return {.dense = "classifier.dense", .activation = activation, .out = "classifier.out_proj"};
}

// position_ids are 0, 1, 2 ... in a buffer; the others are heads of pre-training and other tasks.
constexpr WordList kBertHarmless =
    "embeddings.position_ids pooler. cls. lm_head. discriminator_predictions. "
    "generator_predictions. generator_lm_head. qa_outputs.";

// ---- What one has for itself.

// Without a layer's number: layers share these tensors.
#define ENCORE_ALBERT_LAYER "encoder.albert_layer_groups.0.albert_layers.0."
constexpr LayerModule kAlbertModules[] = {
    {ENCORE_ALBERT_LAYER "attention.query", &W::q_proj},
    {ENCORE_ALBERT_LAYER "attention.key", &W::k_proj},
    {ENCORE_ALBERT_LAYER "attention.value", &W::v_proj},
    {ENCORE_ALBERT_LAYER "attention.dense", &W::out_proj},
    {ENCORE_ALBERT_LAYER "attention.LayerNorm", &W::norm1},
    {ENCORE_ALBERT_LAYER "ffn", &W::linear1},
    {ENCORE_ALBERT_LAYER "ffn_output", &W::linear2},
    {ENCORE_ALBERT_LAYER "full_layer_layer_norm", &W::norm2},
};
#undef ENCORE_ALBERT_LAYER
constexpr SupportedValue kAlbertSupported[] = {{"num_hidden_groups", 1.0, ": one layer for all"},
                                               {"inner_group_num", 1.0, ": one layer for all"}};

constexpr LayerModule kDistilBertModules[] = {
    {"transformer.layer.{N}.attention.q_lin", &W::q_proj},
    {"transformer.layer.{N}.attention.k_lin", &W::k_proj},
    {"transformer.layer.{N}.attention.v_lin", &W::v_proj},
    {"transformer.layer.{N}.attention.out_lin", &W::out_proj},
    {"transformer.layer.{N}.sa_layer_norm", &W::norm1},
    {"transformer.layer.{N}.ffn.lin1", &W::linear1},
    {"transformer.layer.{N}.ffn.lin2", &W::linear2},
    {"transformer.layer.{N}.output_layer_norm", &W::norm2},
};

Status ConfigureElectra(JsonMembers* /*config*/, ModelSpec* spec) {
  if (spec->embeddings.width == spec->encoder.d_model) spec->embeddings.projection = {};
  return {};
}

// What the published folders say of the pooler and of the task, though transformers reads neither.
constexpr SupportedValue kErnieSupported[] = {{"pool_act", "tanh"}, {"task_id", 0.0}};

Status ConfigureErnie(JsonMembers* config, ModelSpec* spec) {
  const size_t tasks = ReadExtent(config, {"task_type_vocab_size", 3});
  if (!config->Bool("use_task_id", false)) return {};
  spec->embeddings.task = "embeddings.task_type_embeddings";
  spec->embeddings.task_vocab_size = tasks;
  return {};
}

constexpr LayerModule kMpnetModules[] = {
    {"encoder.relative_attention_bias", &W::position_bias, false},
    {"encoder.layer.{N}.attention.attn.q", &W::q_proj},
    {"encoder.layer.{N}.attention.attn.k", &W::k_proj},
    {"encoder.layer.{N}.attention.attn.v", &W::v_proj},
    {"encoder.layer.{N}.attention.attn.o", &W::out_proj},
    {"encoder.layer.{N}.attention.LayerNorm", &W::norm1},
};
// transformers has one size of the table of buckets.
constexpr SupportedValue kMpnetSupported[] = {{"relative_attention_num_buckets", 32.0}};

Status ConfigureMpnet(JsonMembers* /*config*/, ModelSpec* spec) {
  for (LayerConfig& layer : spec->encoder.layers) {
    layer.buckets = BucketConfig{.num_buckets = 32, .max_distance = 128};
  }
  return {};
}

constexpr LayerModule kJinaNetwork[] = {
    {"encoder.layer.{N}.mlp.gated_layers", &W::linear1, false},
    {"encoder.layer.{N}.mlp.wo", &W::linear2},
    {"encoder.layer.{N}.mlp.layernorm", &W::norm2},
};

Status ConfigureJina(JsonMembers* config, ModelSpec* spec) {
  const std::string network = config->String("feed_forward_type", "original");
  ENCORE_RETURN_IF_ERROR(config->status());
  if (network != "geglu" && network != "reglu") {
    return Status(ErrorCode::kUnsupported, config->where() + ": feed_forward_type is " +
                                               Quoted(network) +
                                               "; encore computes geglu and reglu only with ALiBi");
  }
  for (LayerConfig& layer : spec->encoder.layers) {
    layer.alibi.emplace();
    layer.activation = network == "geglu" ? Activation::kGelu : Activation::kRelu;
  }
  return {};
}

constexpr LayerModule kGteModules[] = {
    {"encoder.layer.{N}.attention.qkv_proj", &W::in_proj},
    {"encoder.layer.{N}.attention.o_proj", &W::out_proj},
    {"encoder.layer.{N}.attn_ln", &W::norm1},
    {"encoder.layer.{N}.mlp.up_gate_proj", &W::linear1, false},
    {"encoder.layer.{N}.mlp.down_proj", &W::linear2},
    {"encoder.layer.{N}.mlp_ln", &W::norm2},
};
constexpr SupportedValue kGteSupported[] = {{"position_embedding_type", "rope"}};

// Positions of the published code, which is "new" or has an auto_map, and of transformers.
Status ConfigureGte(JsonMembers* config, ModelSpec* spec) {
  const bool published = config->String("model_type", "") == "new" || config->Has("auto_map");
  RotaryConfig rotary;
  ENCORE_RETURN_IF_ERROR(ReadRope(config,
                                  {.head_size = spec->encoder.layers.front().head_size,
                                   .max_positions = spec->embeddings.max_positions,
                                   .theta = published ? 10000.0 : 160000.0,
                                   .ntk = published},
                                  &rotary));
  for (LayerConfig& layer : spec->encoder.layers) layer.rotary = rotary;
  // transformers has gelu in the head of masked words, the published code the layers' activation.
  if (published) {
    spec->language.activation = &ActivationRowOf(spec->encoder.layers.front().activation);
  }
  return {};
}

// ---- The rows.

constexpr Family kPostNormFamilies[] = {
    // Devlin et al. 2018, arXiv:1810.04805.
    {.model_types = "bert",
     .prefixes = "bert.",
     .harmless_tensors = kBertHarmless,
     .modules = {kBertAttention, kBertNetwork},
     .embeddings = BertEmbeddings(),
     .head = PoolerHead(),
     .token_head = kTokenHead,
     .language = kBertLanguage},
    // Jina v2 (Guenther et al. 2023, arXiv:2310.19923): BERT with ALiBi on both sides and gated
    // networks. v2-base-code and its like normalize q and k over all heads at once.
    {.model_types = "bert",
     .marker_key = "position_embedding_type",
     .marker_value = "alibi",
     .prefixes = "bert.",
     .harmless_tensors = kBertHarmless,
     .foreign_tensors = "layer_norm_q layer_norm_k up_gated_layer",
     .own_keys = "feed_forward_type",
     .ignored_keys = "auto_map emb_pooler model_max_length position_embedding_type",
     .modules = {kBertAttention, kJinaNetwork},
     .gate = Gate::kFirstHalf,
     .embeddings = BertEmbeddings(PositionRule::kNone),
     .head = PoolerHead(),
     .token_head = kTokenHead,
     .language = kBertLanguage,
     .configure = ConfigureJina},
    // Sanh et al. 2019, arXiv:1910.01108: BERT with names of its own and without types. Sinusoidal
    // positions are in the file as any others.
    {.model_types = "distilbert",
     .prefixes = "distilbert.",
     .harmless_tensors =
         "embeddings.position_ids vocab_transform. vocab_layer_norm. vocab_projector. qa_outputs.",
     .keys = {.d_model = "dim",
              .layers = "n_layers",
              .heads = "n_heads",
              .d_ff = "hidden_dim",
              .epsilon = {.absent = 1e-12},
              .activation = {"activation", "gelu"}},
     .own_keys = "sinusoidal_pos_embds",
     .ignored_keys = "sinusoidal_pos_embds tie_weights_",
     .modules = {kDistilBertModules},
     .embeddings = {.word = "embeddings.word_embeddings",
                    .position = "embeddings.position_embeddings",
                    .norm = "embeddings.LayerNorm"},
     .head = {.dense = "pre_classifier",
              .activation = &ActivationRowOf(Activation::kRelu),
              .out = "classifier"},
     .token_head = kTokenHead,
     .language = {.dense = "vocab_transform",
                  .layer_activation = true,
                  .norm = "vocab_layer_norm",
                  .norm_epsilon = 1e-12,
                  .decoder = "vocab_projector",
                  .bias = "vocab_projector.bias"}},
    // Clark et al. 2020, arXiv:2003.10555: embeddings may be narrower than layers. The ignored keys
    // are of ElectraForMultipleChoice.
    {.model_types = "electra",
     .prefixes = "electra.",
     .harmless_tensors = kBertHarmless,
     .keys = {.embedding_width = {"embedding_size", 128}},
     .ignored_keys = "summary_type summary_use_proj summary_activation summary_last_dropout",
     .modules = {kBertAttention, kBertNetwork},
     .embeddings = BertEmbeddings(PositionRule::kFromZero, "embeddings_project"),
     .head = TwoLayerHead(&ActivationRowOf(Activation::kGelu)),
     .token_head = kTokenHead,
     .language = {.dense = "generator_predictions.dense",
                  .norm = "generator_predictions.LayerNorm",
                  .decoder = "generator_lm_head",
                  .bias = "generator_lm_head.bias"},
     .configure = ConfigureElectra},
    // RoBERTa (Liu et al. 2019, arXiv:1907.11692), XLM-RoBERTa (arXiv:1911.02116), CamemBERT
    // (arXiv:1911.03894): positions count around padding. All name their base model "roberta".
    {.model_types = "roberta xlm-roberta camembert",
     .prefixes = "roberta.",
     .harmless_tensors = kBertHarmless,
     .modules = {kBertAttention, kBertNetwork},
     .embeddings = BertEmbeddings(PositionRule::kFromPadding),
     .head = TwoLayerHead(),
     .token_head = kTokenHead,
     .language = kRobertaLanguage},
    // Song et al. 2020, arXiv:2004.09297: scores have a bias by distance, one table for all layers.
    // transformers counts positions around id 1, whatever pad_token_id says.
    {.model_types = "mpnet",
     .prefixes = "mpnet.",
     .harmless_tensors = "embeddings.position_ids pooler. lm_head. qa_outputs.",
     .supported = kMpnetSupported,
     .modules = {kMpnetModules, kBertNetwork},
     .embeddings = {.word = "embeddings.word_embeddings",
                    .position = "embeddings.position_embeddings",
                    .position_rule = PositionRule::kFromPadding,
                    .pad_token_id = 1,
                    .norm = "embeddings.LayerNorm"},
     .head = TwoLayerHead(),
     .token_head = kTokenHead,
     .language = kRobertaLanguage,
     .configure = ConfigureMpnet},
    // Lan et al. 2019, arXiv:1909.11942: all layers are one, embeddings are narrower. The ignored
    // keys are of training and of the first code's other networks.
    {.model_types = "albert",
     .prefixes = "albert.",
     .harmless_tensors = "embeddings.position_ids pooler. predictions. sop_classifier. qa_outputs.",
     .keys = {.embedding_width = {"embedding_size", 128}, .activation = {"hidden_act", "gelu_new"}},
     .own_keys = "num_hidden_groups inner_group_num",
     .ignored_keys = "classifier_dropout_prob down_scale_factor gap_size layers_to_keep "
                     "net_structure_type num_memory_blocks",
     .supported = kAlbertSupported,
     .modules = {kAlbertModules},
     .embeddings = BertEmbeddings(PositionRule::kFromZero, "encoder.embedding_hidden_mapping_in"),
     .head = PoolerHead("pooler"),
     .token_head = kTokenHead,
     .language = {.dense = "predictions.dense",
                  .layer_activation = true,
                  .norm = "predictions.LayerNorm",
                  .decoder = "predictions.decoder",
                  .bias = "predictions.bias"}},
    // ERNIE 1 to 3 (Sun et al. 2019, arXiv:1907.12412, and 2021, arXiv:2107.02137): embeddings may
    // have a part for the task, which is the first one's for whoever names none. The ignored keys
    // are of the framework that the models were trained in.
    {.model_types = "ernie",
     .prefixes = "ernie.",
     .harmless_tensors = kBertHarmless,
     .own_keys = "task_type_vocab_size",
     .ignored_keys = "enable_recompute fuse paddlenlp_version",
     .supported = kErnieSupported,
     .modules = {kBertAttention, kBertNetwork},
     .embeddings = BertEmbeddings(),
     .head = PoolerHead(),
     .token_head = kTokenHead,
     .language = kBertLanguage,
     .configure = ConfigureErnie},
    // GTE 1.5 (Zhang et al. 2024, arXiv:2407.19669): rotary positions and gated networks. The
    // published folders are "new", with code of their own; transformers calls it "gte", and so do
    // others who publish that code. The ignored keys say how that code computes, and where it lies.
    {.model_types = "new gte",
     .prefixes = "new. gte.",
     .harmless_tensors = "pooler. lm_head. qa_outputs.",
     .keys = {.types = {"type_vocab_size", 1},
              .min_types = 0,
              .max_positions = {"max_position_embeddings", 8192}},
     .ignored_keys = "auto_map matryoshka_dimensions unpad_inputs use_memory_efficient_attention",
     .supported = kGteSupported,
     .modules = {kGteModules},
     .gate = Gate::kSecondHalf,
     .embeddings = RotaryEmbeddings("embeddings.LayerNorm"),
     .head = PoolerHead(),
     .token_head = kTokenHead,
     .language = {.dense = "lm_head.dense",
                  .norm = "lm_head.norm lm_head.layer_norm",
                  .decoder = "lm_head.decoder"},
     .configure = ConfigureGte},
};

}  // namespace

std::span<const Family> PostNormFamilies() { return kPostNormFamilies; }

}  // namespace encore::internal
