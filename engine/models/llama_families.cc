// SPDX-License-Identifier: Apache-2.0
//
// Families with Llama's layers: RMSNorm before sublayers, rotary positions, gated networks. Most
// are causal language models, which embed texts by their last token, or without causality.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/models/config_keys.h"
#include "engine/models/family.h"

namespace encore::inline v0_1::internal {
namespace {

using W = EncoderLayerWeights;

// ---- What several rows share.

constexpr LayerModule kLlamaAttention[] = {
    {"layers.{N}.input_layernorm", &W::norm1, false},
    {"layers.{N}.self_attn.q_proj", &W::q_proj, false, "attention_bias"},
    {"layers.{N}.self_attn.k_proj", &W::k_proj, false, "attention_bias"},
    {"layers.{N}.self_attn.v_proj", &W::v_proj, false, "attention_bias"},
    {"layers.{N}.self_attn.o_proj", &W::out_proj, false, "attention_bias"},
};
constexpr LayerModule kLlamaNetwork[] = {
    {"layers.{N}.mlp.gate_proj", &W::gate_proj, false},
    {"layers.{N}.mlp.up_proj", &W::up_proj, false},
    {"layers.{N}.mlp.down_proj", &W::linear2, false},
};
// Without biases, and Qwen 2's, which has them always.
constexpr LayerModule kPlainAttention[] = {
    {"layers.{N}.input_layernorm", &W::norm1, false},
    {"layers.{N}.self_attn.q_proj", &W::q_proj, false},
    {"layers.{N}.self_attn.k_proj", &W::k_proj, false},
    {"layers.{N}.self_attn.v_proj", &W::v_proj, false},
    {"layers.{N}.self_attn.o_proj", &W::out_proj, false},
};
constexpr LayerModule kQwen2Attention[] = {
    {"layers.{N}.input_layernorm", &W::norm1, false},
    {"layers.{N}.self_attn.q_proj", &W::q_proj},
    {"layers.{N}.self_attn.k_proj", &W::k_proj},
    {"layers.{N}.self_attn.v_proj", &W::v_proj},
    {"layers.{N}.self_attn.o_proj", &W::out_proj, false},
};
// The same with biases where mlp_bias says so.
constexpr LayerModule kBiasedNetwork[] = {
    {"layers.{N}.mlp.gate_proj", &W::gate_proj, false, "mlp_bias"},
    {"layers.{N}.mlp.up_proj", &W::up_proj, false, "mlp_bias"},
    {"layers.{N}.mlp.down_proj", &W::linear2, false, "mlp_bias"},
};
constexpr LayerModule kLlamaNorm2[] = {
    {"layers.{N}.post_attention_layernorm", &W::norm2, false},
};
constexpr LayerModule kQkNorms[] = {
    {"layers.{N}.self_attn.q_norm", &W::q_norm, false},
    {"layers.{N}.self_attn.k_norm", &W::k_norm, false},
};

constexpr FamilyKeys kLlamaKeys = {.kv_heads = {"num_key_value_heads"},
                                   .head_size = {"head_dim"},
                                   .max_positions = {"max_position_embeddings", 2048},
                                   .epsilon = {"rms_norm_eps", 1e-6},
                                   .activation = {"hidden_act", "silu"}};

// Whether the key is there and null, where null and none differ.
bool IsNull(JsonMembers* config, std::string_view key) {
  const JsonValue* value = config->Find(key);
  return value != nullptr && value->is_null();
}

// sliding_window of decoders: the token itself and those before it, `window` in all, or without
// causality so many on both sides. As LayerConfig::window, which leaves the token itself out.
size_t ReadSlidingWindow(JsonMembers* config, bool causal, size_t absent) {
  const size_t window = ReadExtent(config, {"sliding_window", absent});
  if (causal && window < 2) config->Refuse("sliding_window", "at least 2");
  return causal ? window - 1 : window;
}

// auto_map names code of the folder's own; `name` is the class that encore implements, of the entry
// `key`. Whether it is there; another one is kUnsupported.
Status ReadOwnCode(JsonMembers* config, std::string_view name, bool* found,
                   std::string_view key = "AutoModel") {
  const JsonValue* map = config->Find("auto_map");
  const JsonValue* value = map != nullptr && map->is_object() ? map->Find(key) : nullptr;
  *found =
      value != nullptr && value->is_string() && value->text().ends_with("." + std::string(name));
  if (*found || map == nullptr) return {};
  return CheckSupported(config->where(), {"auto_map", {}}, *map);
}

void SetCausal(bool causal, ModelSpec* spec) {
  for (LayerConfig& layer : spec->encoder.layers) layer.causal = causal;
}

// The head of transformers' decoders. It reads the last token that is not pad_token_id; without
// that key as the family's class has it, and of null the last token whatever it is.
constexpr HeadSpec kScore = {.rows = OutputRows::kLast, .out = "score", .out_bias = false};
// Theirs of labels of tokens.
constexpr HeadSpec kTokenScore = {.rows = OutputRows::kAll, .out = "score"};

void DropHeads(ModelSpec* spec) { spec->head = spec->token_head = {}; }

Status ReadScoreKeys(JsonMembers* config, std::optional<int32_t> absent, ModelSpec* spec) {
  spec->token_head.out_bias = config->Bool("token_classification_bias", true);
  spec->head.padding = absent;
  const JsonValue* key = config->Find("pad_token_id");
  if (key == nullptr) return {};
  spec->head.padding = {};
  if (key->is_null()) return {};
  const double id = key->is_number() ? key->number() : 0.5;
  if (id != std::floor(id) || std::fabs(id) > std::numeric_limits<int32_t>::max()) {
    config->Refuse("pad_token_id", "a token's id, or null");
    return config->status();
  }
  spec->head.padding = static_cast<int32_t>(id);
  return {};
}

// ---- EuroBERT.

// The head is of the first token, of the mean of all, or with "late" the mean of each one's logits.
Status ConfigureEuroBert(JsonMembers* config, ModelSpec* spec) {
  // The published code has another name of the key than transformers.
  const bool published = config->Has("clf_pooling");
  const std::string_view key = published ? "clf_pooling" : "classifier_pooling";
  const std::string pooling = config->String(key, "late");
  if (pooling != "bos" && pooling != "mean" && pooling != "late") {
    config->Refuse(key, "'bos', 'mean' or 'late'");
  }
  if (published && config->String("classifier_pooling", pooling) != pooling) {
    config->Refuse("classifier_pooling", "'" + pooling + "', as clf_pooling has it");
  }
  if (pooling != "bos") spec->head.rows = OutputRows::kAll;
  spec->head.mean_of_logits = pooling == "late";
  spec->language.has_bias = config->Bool("mlp_bias", false);
  if (published) {
    spec->head.note =
        ", by clf_pooling of the folder's own code; sentence-transformers reads the key with that "
        "code only";
  }
  return {};
}

// ---- Llama and Mistral. transformers reads is_causal in all decoders.

// llama_bidirec: NVIDIA's embedders and rerankers, Llama without causality. The head has a pooling
// and a temperature of its own.
Status ConfigureLlamaBidirec(JsonMembers* config, ModelSpec* spec) {
  constexpr std::string_view kReranker = "AutoModelForSequenceClassification";
  const JsonValue* map = config->Find("auto_map");
  const bool reranks = map != nullptr && map->is_object() && map->Find(kReranker) != nullptr;
  bool own = false;
  ENCORE_RETURN_IF_ERROR(
      reranks ? ReadOwnCode(config, "LlamaBidirectionalForSequenceClassification", &own, kReranker)
              : ReadOwnCode(config, "LlamaBidirectionalModel", &own));
  SetCausal(false, spec);
  config->Ignore("is_causal");
  spec->token_head = {};
  HeadSpec& head = spec->head;
  const std::string pooling = config->String("pooling", "avg");
  head.rows = pooling == "avg"   ? OutputRows::kAll
              : pooling == "cls" ? OutputRows::kFirst
                                 : OutputRows::kLast;
  head.temperature = config->Number("temperature", 1);
  if (!std::isfinite(head.temperature) || head.temperature == 0) {
    config->Refuse("temperature", "a number other than 0");
  }
  if (pooling != "avg" && pooling != "cls" && pooling != "last") {
    head = {.none = "its pooling is none of 'avg', 'cls' and 'last'"};
  }
  return {};
}

Status ConfigureLlama(JsonMembers* config, ModelSpec* spec) {
  if (spec->model_type == "llama_bidirec") return ConfigureLlamaBidirec(config, spec);
  SetCausal(config->Bool("is_causal", true), spec);
  return ReadScoreKeys(config, {}, spec);
}

Status ConfigureMistral(JsonMembers* config, ModelSpec* spec) {
  const bool causal = config->Bool("is_causal", true);
  SetCausal(causal, spec);
  ENCORE_RETURN_IF_ERROR(ReadScoreKeys(config, {}, spec));
  if (IsNull(config, "sliding_window")) return {};
  const size_t window = ReadSlidingWindow(config, causal, 4096);
  for (LayerConfig& layer : spec->encoder.layers) layer.window = window;
  return {};
}

// ---- Qwen 2 and 3.

Status ReadQwenWindows(JsonMembers* config, bool causal, ModelSpec* spec) {
  const bool slides =
      config->Bool("use_sliding_window", false) && !IsNull(config, "sliding_window");
  config->Ignore("sliding_window");
  const size_t window = slides ? ReadSlidingWindow(config, causal, 4096) : 1;
  const size_t first = config->Size("max_window_layers", 28);
  ReadWindows(
      config, window, [&](size_t i) { return slides && i >= first; }, &spec->encoder.layers);
  for (const LayerConfig& layer : spec->encoder.layers) {
    if (layer.window && !slides) {
      config->Refuse("layer_types", "no 'sliding_attention' without use_sliding_window");
    }
  }
  return {};
}

// The code beside gte-Qwen2 and its kin is transformers' with is_causal.
Status ConfigureQwen2(JsonMembers* config, ModelSpec* spec) {
  const bool causal = config->Bool("is_causal", true);
  bool own = false;
  ENCORE_RETURN_IF_ERROR(ReadOwnCode(config, "Qwen2Model", &own));
  if (own && causal) config->Refuse("is_causal", "false beside auto_map's Qwen2Model");
  SetCausal(causal, spec);
  if (own) DropHeads(spec);
  ENCORE_RETURN_IF_ERROR(ReadScoreKeys(config, {}, spec));
  return ReadQwenWindows(config, causal, spec);
}

// voyage-4's own code: no causality, and each token's state goes through a linear layer to as many
// elements as there are labels.
Status ReadVoyage(JsonMembers* config, ModelSpec* spec) {
  const JsonValue* labels = config->Find("id2label");
  size_t width = 2;  // transformers' number without either key
  if (labels != nullptr && labels->is_object()) width = labels->members().size();
  spec->projection = {"linear", ReadExtent(config, {"num_labels", width})};
  config->Ignore("use_bidirectional_attention");
  return {};
}

Status ConfigureQwen3(JsonMembers* config, ModelSpec* spec) {
  for (LayerConfig& layer : spec->encoder.layers) layer.qk_norm = layer.norm;
  const bool pplx = spec->model_type == "bidirectional_pplx_qwen3";
  bool own = false;
  ENCORE_RETURN_IF_ERROR(
      ReadOwnCode(config, pplx ? "PPLXQwen3Model" : "Qwen3BidirectionalModel", &own));
  if (pplx) config->Ignore("use_bidirectional_attention");
  if (own && !pplx) ENCORE_RETURN_IF_ERROR(ReadVoyage(config, spec));
  const bool causal = config->Bool("is_causal", true) && !own && !pplx;
  if ((own || pplx) && config->Bool("use_sliding_window", false)) {
    config->Refuse("use_sliding_window", "false, as in the published models");
  }
  SetCausal(causal, spec);
  if (own || pplx) DropHeads(spec);
  ENCORE_RETURN_IF_ERROR(ReadScoreKeys(config, {}, spec));
  return ReadQwenWindows(config, causal, spec);
}

// ---- Gemma 3.

constexpr LayerModule kGemmaNorms[] = {
    {"layers.{N}.post_attention_layernorm", &W::post_norm1, false},
    {"layers.{N}.pre_feedforward_layernorm", &W::norm2, false},
    {"layers.{N}.post_feedforward_layernorm", &W::post_norm2, false},
};

// The window of a model that is causal, or that is_causal makes one of both sides, is a decoder's.
// With use_bidirectional_attention half of it lies on each side, and one token more where is_causal
// says the same again.
size_t ReadGemmaWindow(JsonMembers* config, ModelSpec* spec) {
  const bool both_sides = config->Bool("use_bidirectional_attention", false);
  const bool causal = config->Bool("is_causal", true);
  SetCausal(causal && !both_sides, spec);
  if (!both_sides) return ReadSlidingWindow(config, causal, 4096);
  const size_t window = ReadExtent(config, {"sliding_window", 4096});
  if (window < 2) config->Refuse("sliding_window", "at least 2");
  return window / 2 + (causal ? 0 : 1);
}

Status ConfigureGemma3(JsonMembers* config, ModelSpec* spec) {
  const double scalar = config->Number("query_pre_attn_scalar", 256);
  if (!(scalar > 0) || !std::isfinite(scalar)) {
    config->Refuse("query_pre_attn_scalar", "a number above 0");
  }
  EncoderConfig& encoder = spec->encoder;
  encoder.final_norm.weight_offset = 1;
  for (LayerConfig& layer : encoder.layers) {
    layer.norm = encoder.final_norm;
    layer.qk_norm = encoder.final_norm;
    layer.attention_scale = 1 / std::sqrt(scalar);
  }
  spec->embeddings.scale = static_cast<float>(std::sqrt(static_cast<double>(encoder.d_model)));
  ENCORE_RETURN_IF_ERROR(ReadScoreKeys(config, 0, spec));
  spec->logit_softcapping = config->Has("final_logit_softcapping");
  const size_t window = ReadGemmaWindow(config, spec);
  // transformers writes the same number under either name.
  const size_t other = ReadExtent(config, {"_sliding_window_pattern", 6});
  const size_t every = ReadExtent(config, {"sliding_window_pattern", other});
  ReadWindows(
      config, window, [&](size_t i) { return (i + 1) % every != 0; }, &encoder.layers);
  return ReadTwoRopes(config, {.theta = 1000000},
                      {.theta_key = "rope_local_base_freq", .scaled = false}, spec);
}

// ---- UltraBERT.

// A number for each layer, as the published files spell what transformers writes otherwise. Empty
// where the key is absent.
std::vector<double> ReadOfLayers(JsonMembers* config, std::string_view key, size_t layers) {
  std::vector<double> numbers;
  if (!config->Has(key)) return numbers;
  const std::string wanted =
      "an array of a number for each of " + std::to_string(layers) + " layers";
  for (const JsonValue& item : config->RequiredArray(key).items()) {
    numbers.push_back(item.is_number() ? item.number() : -1);
    if (!(numbers.back() >= 0 && numbers.back() <= std::numeric_limits<int32_t>::max())) {
      config->Refuse(key, wanted);
    }
  }
  if (numbers.size() != layers) config->Refuse(key, wanted);
  if (!config->ok()) numbers.clear();
  return numbers;
}

// attention_windows has 0 where a layer sees all.
void ReadUltraBertWindows(JsonMembers* config, std::vector<LayerConfig>* layers) {
  constexpr std::string_view kKey = "attention_windows";
  const std::vector<double> windows = ReadOfLayers(config, kKey, layers->size());
  double given = 0;
  for (const double window : windows) {
    if (given == 0) given = window;
    if (window != std::floor(window) || (window != 0 && window != given)) {
      config->Refuse(kKey, "0 or the same whole number for each layer");
    }
  }
  const size_t own = ReadExtent(config, {"sliding_window", 128});
  ReadWindows(
      config, given != 0 ? static_cast<size_t>(given) : own,
      [&](size_t i) { return windows.empty() ? (i + 1) % 3 != 0 : windows[i] != 0; }, layers);
}

Status ConfigureUltraBert(JsonMembers* config, ModelSpec* spec) {
  std::vector<LayerConfig>& layers = spec->encoder.layers;
  ReadUltraBertWindows(config, &layers);
  if (config->Has("rope_scaling")) config->Refuse("rope_scaling", "null");
  // rope_theta has those of both types of layers.
  double thetas[2] = {2560000, 10000};
  const std::vector<double> given = ReadOfLayers(config, "rope_theta", layers.size());
  for (size_t i = 0; i < given.size() && config->ok(); ++i) {
    thetas[layers[i].window ? 1 : 0] = given[i];
    if (given[i] == 0) config->Refuse("rope_theta", "numbers above 0");
  }
  const std::string pooling = config->String("classifier_pooling", "cls");
  if (pooling == "mean") spec->head.rows = OutputRows::kAll;
  if (pooling != "mean" && pooling != "cls") {
    config->Refuse("classifier_pooling", "'cls' or 'mean'");
  }
  spec->language.inner = ReadExtent(config, {"prediction_head_size", 768});
  ENCORE_RETURN_IF_ERROR(config->status());
  return ReadTwoRopes(config, {.theta = thetas[0], .theta_key = {}},
                      {.theta = thetas[1], .theta_key = {}}, spec);
}

// ---- The rows.

// What all rows share, where they say nothing else.
constexpr Family LlamaLike(Family family) {
  if (family.harmless_tensors.empty()) family.harmless_tensors = "lm_head.";
  if (family.norm_placement == NormPlacement::kPost) family.norm_placement = NormPlacement::kPre;
  family.norm = NormType::kRmsNorm;
  family.gate = Gate::kFirstHalf;
  family.final_norm = "norm";
  family.embeddings = WordsAlone("embed_tokens");
  return family;
}

constexpr Family kLlamaFamilies[] = {
    // Boizard et al. 2025, arXiv:2503.05500: Llama's layers without causality. The ignored keys are
    // of tokenizers and training, and of where the published code lies.
    LlamaLike(
        {.model_types = "eurobert",
         .keys = {.kv_heads = {"num_key_value_heads"},
                  .head_size = {"head_dim"},
                  .max_positions = {"max_position_embeddings", 8192},
                  .epsilon = {"rms_norm_eps", 1e-5},
                  .activation = {"hidden_act", "silu"}},
         .own_keys = "classifier_pooling clf_pooling",
         .ignored_keys =
             "auto_map bos_token eos_token hidden_dropout mask_token pad_token pretraining_tp",
         .modules = {kLlamaAttention, kLlamaNorm2, kBiasedNetwork},
         .rope_theta = 10000,
         .head = {.dense = "dense",
                  .activation = &ActivationRowOf(Activation::kGelu),
                  .out = "classifier"},
         .token_head = kTokenHead,
         .language = {.decoder = "lm_head"},
         .tied = false,
         .configure = ConfigureEuroBert}),
    // Touvron et al. 2023, arXiv:2302.13971, and NVIDIA's llama-embed, which is Llama without
    // causality. pretraining_tp is how training cut products in parts.
    LlamaLike({.model_types = "llama llama_bidirec",
               .harmless_tensors = "lm_head. rotary_emb.",
               .keys = kLlamaKeys,
               .ignored_keys = "pretraining_tp",
               .modules = {kLlamaAttention, kLlamaNorm2, kBiasedNetwork},
               .rope_theta = 10000,
               .head = kScore,
               .token_head = kTokenScore,
               .tied = false,
               .configure = ConfigureLlama}),
    // Jiang et al. 2023, arXiv:2310.06825: windows in all layers or in none.
    LlamaLike({.model_types = "mistral",
               .keys = {.kv_heads = {"num_key_value_heads", 8},
                        .head_size = {"head_dim"},
                        .max_positions = {"max_position_embeddings", 131072},
                        .epsilon = {"rms_norm_eps", 1e-6},
                        .activation = {"hidden_act", "silu"}},
               .own_keys = "sliding_window",
               .modules = {kPlainAttention, kLlamaNorm2, kLlamaNetwork},
               .rope_theta = 10000,
               .head = kScore,
               .token_head = kTokenScore,
               .tied = false,
               .configure = ConfigureMistral}),
    // Yang et al. 2024, arXiv:2407.10671: biases of q, k and v.
    LlamaLike({.model_types = "qwen2",
               .keys = {.kv_heads = {"num_key_value_heads", 32},
                        .head_size = {"head_dim"},
                        .max_positions = {"max_position_embeddings", 32768},
                        .epsilon = {"rms_norm_eps", 1e-6},
                        .activation = {"hidden_act", "silu"}},
               .own_keys = "layer_types max_window_layers sliding_window use_sliding_window",
               .modules = {kQwen2Attention, kLlamaNorm2, kLlamaNetwork},
               .rope_theta = 10000,
               .head = kScore,
               .token_head = kTokenScore,
               .tied = false,
               .configure = ConfigureQwen2}),
    // arXiv:2505.09388, as Qwen3-Embedding (arXiv:2506.05176) uses it: a causal model whose last
    // token's hidden state is the vector. pplx-embed and voyage-4 have it without causality.
    LlamaLike({.model_types = "qwen3 bidirectional_pplx_qwen3",
               .keys = {.kv_heads = {"num_key_value_heads", 32},
                        .head_size = {"head_dim", 128},
                        .max_positions = {"max_position_embeddings", 32768},
                        .epsilon = {"rms_norm_eps", 1e-6},
                        .activation = {"hidden_act", "silu"}},
               .own_keys = "layer_types max_window_layers sliding_window use_sliding_window",
               .modules = {kLlamaAttention, kLlamaNorm2, kLlamaNetwork, kQkNorms},
               .rope_theta = 10000,
               .head = kScore,
               .token_head = kTokenScore,
               .tied = false,
               .configure = ConfigureQwen3}),
    // arXiv:2503.19786: norms on both sides of sublayers, windows in most layers, scaled
    // embeddings.
    // EmbeddingGemma (arXiv:2509.20354) has it without causality.
    LlamaLike({.model_types = "gemma3_text",
               .keys = {.kv_heads = {"num_key_value_heads", 4},
                        .head_size = {"head_dim", 256},
                        .max_positions = {"max_position_embeddings", 131072},
                        .epsilon = {"rms_norm_eps", 1e-6},
                        .activation = {"hidden_activation", "gelu_pytorch_tanh"}},
               .own_keys =
                   "_sliding_window_pattern layer_types query_pre_attn_scalar rope_local_base_freq "
                   "sliding_window sliding_window_pattern use_bidirectional_attention",
               .ignored_keys = "cache_implementation",
               .modules = {kLlamaAttention, kGemmaNorms, kLlamaNetwork, kQkNorms},
               .norm_placement = NormPlacement::kBoth,
               .head = kScore,
               .configure = ConfigureGemma3}),
    // dmis-lab/UltraBERT-150M: windows on both sides in two of three layers.
    LlamaLike({.model_types = "ultrabert",
               .prefixes = "ultrabert.",
               .harmless_tensors = "head. cls. decoder.",
               .keys = {.kv_heads = {"num_key_value_heads"},
                        .head_size = {"head_dim"},
                        .max_positions = {"max_position_embeddings", 32768},
                        .epsilon = {"rms_norm_eps", 1e-6},
                        .activation = {"hidden_act", "silu"}},
               .own_keys = "attention_windows classifier_pooling layer_types "
                           "prediction_head_size sliding_window",
               .modules = {kLlamaAttention, kLlamaNorm2, kBiasedNetwork},
               .head = {.out = "classifier"},
               .token_head = kTokenHead,
               .language = {.dense = "head.linear1",
                            .dense_bias = false,
                            .second = "head.linear2",
                            .activation = &ActivationRowOf(Activation::kGeluTanh),
                            .decoder = "head.decoder cls",
                            .has_bias = false},
               .tied = false,
               .configure = ConfigureUltraBert}),
};

}  // namespace

std::span<const Family> LlamaFamilies() { return kLlamaFamilies; }

}  // namespace encore::internal
