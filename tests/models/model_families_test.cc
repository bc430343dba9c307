// SPDX-License-Identifier: Apache-2.0
//
// config.json of the families beside BERT: which switches their keys set, in every spelling, and
// which values are refused by name.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/model_folder.h"

namespace encore {
namespace {

using internal::TextModel;
using nlohmann::json;

struct Change {
  std::string folder;
  std::string key;
  json value;
};

void ExpectChangeRefused(const Change& change, ErrorCode code,
                         const std::vector<std::string>& parts) {
  SCOPED_TRACE(change.folder + ": " + change.key + " = " + change.value.dump());
  ModelFolder folder(kModels + change.folder);
  folder.SetKey(change.key, change.value);
  EXPECT_TRUE(FailsWith(folder.Open(), parts, code));
}

std::vector<LayerConfig> LayersOfFolder(ModelFolder& folder) {
  const Result<TextModel> model = folder.Open();
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? model->encoder().config().layers : std::vector<LayerConfig>(8);
}

TEST(ModelFamilies, ValuesThatEncoreDoesNotComputeAreUnsupported) {
  const std::vector<Change> changes = {
      {"modernbert_3", "classifier_activation", "quick_gelu"},
      {"modernbert", "hidden_activation", "mish"},
      {"mpnet", "relative_attention_num_buckets", 64},
      {"deberta_v2_conv", "conv_act", "tanh"},
      {"deberta_v2_conv", "conv_act", nullptr},
      {"deberta_v2_conv", "conv_act", "mish"},
      {"deberta_v2", "pooler_hidden_act", "mish"},
      {"deberta_v2", "pooler_hidden_act", "quick_gelu"},
      {"albert", "num_hidden_groups", 2},
      {"ernie", "task_id", 1},
      {"ernie_3", "pool_act", "relu"},
      {"albert_1", "inner_group_num", 3},
      {"nomic_bert", "moe_every_n_layers", 2},
      {"nomic_moe", "expert_choice_router", true},
      {"nomic_moe", "num_shared_experts", 1},
      {"nomic_moe", "ffn_div", 2},
      {"nomic_moe", "moe_every_n_layers", 1},
      {"nomic_moe", "moe_every_n_layers", 3},
      {"nomic_bert_old", "activation_function", "glu"},
      {"nomic_bert_old", "prenorm", true},
      {"nomic_bert_old", "parallel_block", true},
      {"nomic_bert_old", "causal", true},
      {"nomic_bert_old", "use_rms_norm", true},
      {"nomic_bert_old", "rotary_emb_fraction", 0.5},
      {"nomic_bert_old", "rotary_emb_interleaved", true},
      {"nomic_bert_old", "rotary_emb_scale_base", 512},
      {"nomic_bert_old", "scale_attn_weights", false},
      {"gte_new", "position_embedding_type", "absolute"},
      {"gte_new", "layer_norm_type", "rms_norm"},
      {"gte_new", "logn_attention_scale", true},
      {"gte_new", "logn_attention_clip1", true},
      {"gte_new", "pack_qkv", false},
      {"jina_bert", "feed_forward_type", "original"},
      {"gemma3", "attn_logit_softcapping", 50.0},
      {"llama", "partial_rotary_factor", 0.5},
      {"llama", "auto_map", {{"AutoModel", "modeling_llama.LlamaModel"}}},
      {"llama_bidirec", "auto_map", {{"AutoModel", "modeling_llama.LlamaModel"}}},
      {"qwen2", "auto_map", {{"AutoModel", "modeling_qwen.Qwen2Other"}}},
      {"qwen3", "auto_map", {{"AutoModel", "modeling.PPLXQwen3Model"}}},
      {"qwen3_voyage", "auto_map", {{"AutoModel", "Qwen3BidirectionalModel"}}},
      {"qwen3_pplx", "auto_map", "modeling.PPLXQwen3Model"},
      {"ultrabert", "hidden_act", "mish"},
      {"t5", "feed_forward_proj", "gated-mish"},
      {"t5", "feed_forward_proj", "gated-gelu-new"},
      {"qwen3", "partial_rotary_factor", 0.5},
      {"esm", "is_folding_model", true},
      {"esm", "esmfold_config", {{"esm_type", "esm2"}}},
      {"esm", "is_decoder", true},
      {"esm", "rope_scaling", {{"type", "linear"}, {"factor", 2}}},
      {"esm_1b", "position_embedding_type", "relative_key"},
      {"clip_text", "hidden_act", "mish"},
      {"jina_v3", "position_embedding_type", "relative_key"},
      {"clip_text", "is_causal", false},
      {"siglip_text", "is_causal", true},
      {"jina_v3_bank", "position_embedding_type", "absolute"},
      {"bert", "rope_parameters", {{"rope_type", "default"}}},
  };
  for (const Change& change : changes) {
    ExpectChangeRefused(change, ErrorCode::kUnsupported, {"config.json: " + change.key + " is "});
  }
}

TEST(ModelFamilies, ValuesThatMakeNoSenseAreInvalid) {
  const std::vector<Change> changes = {
      {"modernbert", "layer_types", {"full_attention"}},
      {"modernbert", "layer_types", {1, 2, 3, 4}},
      {"modernbert", "local_attention", 1},
      {"modernbert_old", "global_attn_every_n_layers", 0},
      {"modernbert_old", "global_rope_theta", 0},
      {"modernbert_old", "local_rope_theta", -1.0},
      {"modernbert", "classifier_pooling", "max"},
      {"mpnet", "max_position_embeddings", 2},
      {"deberta_v2", "pos_att_type", "p2c|p2p"},
      {"deberta_v2", "pos_att_type", 2},
      {"deberta_v2", "pos_att_type", {"c2p", 1}},
      {"deberta_v2", "position_buckets", 1},
      {"deberta_v2", "position_buckets", 254},
      {"deberta_v2", "position_buckets", 2.5},
      {"deberta_v2", "max_relative_positions", "all"},
      {"deberta_v2", "norm_rel_ebd", 1},
      {"deberta_v2", "share_att_key", "yes"},
      {"deberta_v2", "attention_head_size", 12},
      {"deberta_v2", "pooler_hidden_size", 12},
      {"deberta_v2_conv", "conv_kernel_size", 2},
      {"deberta_v2_conv", "conv_kernel_size", 65},
      {"deberta_v2_conv", "conv_kernel_size", 2.5},
      {"deberta_v2_conv", "conv_kernel_size", "3"},
      {"deberta_v2_conv", "conv_groups", 0},
      {"deberta_v2_conv", "conv_groups", 5},
      {"deberta_v2_conv", "conv_groups", -1},
      {"nomic_bert_old", "rotary_emb_base", -1},
      {"jina_v3_bank", "rotary_emb_base", -1},
      {"jina_v3_bank", "lora_rank", 0},
      {"jina_v3_bank", "lora_adaptations", "all"},
      {"siglip", "text_config", 3},
      {"nomic_bert_old", "hidden_size", 64},
      {"nomic_bert_old", "hidden_act", "gelu"},
      {"gte", "type_vocab_size", -1},
      {"qwen3", "num_key_value_heads", 3},
      {"qwen3", "head_dim", 0},
      {"qwen3_window", "sliding_window", 1},
      {"gemma3", "sliding_window", 1},
      {"gemma3_causal", "sliding_window", 1},
      {"gemma3", "query_pre_attn_scalar", 0},
      {"mistral", "sliding_window", 1},
      {"mistral_both_sides", "sliding_window", 0},
      {"mistral", "sliding_window", "20"},
      {"mistral", "num_key_value_heads", 3},
      {"qwen2", "sliding_window", 1},
      {"qwen2", "layer_types", {"full_attention"}},
      {"qwen2_gte", "is_causal", true},
      {"qwen3_pplx", "use_sliding_window", true},
      {"qwen3_voyage", "use_sliding_window", true},
      {"qwen3_voyage", "num_labels", 0},
      {"ultrabert", "sliding_window", 0},
      {"ultrabert", "classifier_pooling", "max"},
      {"ultrabert", "rope_scaling", {{"rope_type", "linear"}, {"factor", 2}}},
      {"ultrabert_old_3", "attention_windows", {20, 20}},
      {"ultrabert_old_3", "attention_windows", {20, 10, 0}},
      {"ultrabert_old_3", "attention_windows", {20, 20, -1}},
      {"ultrabert_old_3", "attention_windows", 20},
      {"ultrabert_old_3", "rope_theta", 10000.0},
      {"ultrabert_old_3", "rope_theta", {10000.0, 10000.0}},
      {"ultrabert_old_3", "rope_theta", {10000.0, 10000.0, 0}},
      {"t5", "relative_attention_num_buckets", 30},
      {"t5", "relative_attention_max_distance", 8},
      {"t5", "d_kv", 0},
      {"eurobert", "rope_parameters", 7},
      {"esm", "mask_token_id", nullptr},
      {"esm", "token_dropout", 1},
      {"esm", "rope_theta", 0},
      {"esm_1b", "pad_token_id", nullptr},
      {"eurobert_3", "classifier_pooling", "first"},
      {"albert", "embedding_size", 0},
      {"ernie", "task_type_vocab_size", 0},
      // Another type than the one value has that encore computes.
      {"albert", "num_hidden_groups", "1"},
      {"albert", "inner_group_num", 1.5},
      {"mpnet", "relative_attention_num_buckets", true},
      {"ernie", "task_id", -1},
      {"ernie", "pool_act", 0},
      {"embedding_gemma2", "sliding_window", 0},
      {"embedding_gemma2", "sliding_window_pattern", 0},
      {"embedding_gemma2", "hidden_size_per_layer_input", 0},
      {"embedding_gemma2", "embedding_dim", 0},
      {"embedding_gemma2", "rope_scaling", {{"rope_type", "linear"}, {"factor", 2}}},
      {"embedding_gemma2", "per_layer_config", {{"7", {{"head_dim", 16}}}}},
      {"embedding_gemma2", "per_layer_config", {{"one", {{"head_dim", 16}}}}},
      {"embedding_gemma2_whole", "image_token_id", -1},
      {"embedding_gemma2_whole", "text_config", 3},
      {"nomic_bert", "moe_every_n_layers", "none"},
      {"nomic_moe", "moe_top_k", 7},
      {"nomic_moe", "moe_top_k", 0},
      {"nomic_moe", "num_experts", 0},
      {"nomic_moe", "num_experts", 5000},
      {"nomic_moe", "moe_normalize_expert_weights", 2},
      {"nomic_moe", "moe_normalize_expert_weights", "sum"},
      {"nomic_moe", "activation_function", "swiglu"},
      {"nomic_moe", "expert_choice_router", 0},
      {"gte", "position_embedding_type", 1},
  };
  for (const Change& change : changes) {
    ExpectChangeRefused(change, ErrorCode::kInvalidArgument,
                        {"config.json: " + change.key + " is "});
  }
}

// ---- Rotary positions.

TEST(ModelFamilies, ScalingsGoByTheirType) {
  ModelFolder folder(kModels + "eurobert_old");
  folder.SetKey("rope_theta", 10000);
  const std::vector<LayerConfig> plain = LayersOfFolder(folder);
  EXPECT_EQ(plain[0].rotary->theta, 10000);
  // transformers 4's two names of the type.
  for (const auto* name : {"type", "rope_type"}) {
    folder.SetKey("rope_scaling", {{name, "linear"}, {"factor", 4}});
    const std::vector<double> halves = LayersOfFolder(folder)[0].rotary->inverse_frequencies;
    ASSERT_EQ(halves.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(halves[i], plain[0].rotary->inverse_frequencies[i] / 4, 1e-8 * halves[i]);
    }
  }
  folder.SetKey("rope_scaling", {{"type", "yarn"}, {"factor", 4}});
  EXPECT_NEAR(LayersOfFolder(folder)[0].rotary->magnitude, 0.1 * std::log(4.0) + 1, 1e-7);
  folder.SetKey("rope_scaling", {{"type", "yarn"}, {"factor", 4}, {"attention_factor", 1.5}});
  EXPECT_EQ(LayersOfFolder(folder)[0].rotary->magnitude, 1.5);
}

TEST(ModelFamilies, ScalingsOfModernBertAreThoseOfItsHeads) {
  ModelFolder folder(kModels + "modernbert");
  const json plain = {{"rope_type", "default"}, {"rope_theta", 300.0}};
  const json scaled = {{"rope_type", "linear"}, {"rope_theta", 300.0}, {"factor", 4}};
  folder.SetKey("rope_parameters", {{"full_attention", scaled}, {"sliding_attention", plain}});
  const std::vector<LayerConfig> layers = LayersOfFolder(folder);
  const std::vector<double> frequencies = layers[0].rotary->inverse_frequencies;
  ASSERT_EQ(frequencies.size(), 8u);
  EXPECT_EQ(frequencies[0], 0.25);
  EXPECT_NEAR(frequencies[4], 0.25 / std::sqrt(300.0), 1e-12);
  EXPECT_EQ(layers[1].rotary->inverse_frequencies[0], 1);
}

TEST(ModelFamilies, OtherScalingsAreRefusedByName) {
  for (const auto* type : {"dynamic", "longrope", "su", "ntk", "proportional"}) {
    for (const auto* folder : {"qwen3_old", "eurobert_old"}) {
      ExpectChangeRefused({folder, "rope_scaling", {{"type", type}, {"factor", 2}}},
                          ErrorCode::kUnsupported,
                          {"config.json: rope_scaling", "'" + std::string(type)});
    }
    ExpectChangeRefused({"gte", "rope_parameters", {{"rope_type", type}, {"factor", 2}}},
                        ErrorCode::kUnsupported, {"rope_parameters", "'" + std::string(type)});
  }
  ExpectChangeRefused({"gte_new", "rope_scaling", {{"type", "dynamic"}, {"factor", 2}}},
                      ErrorCode::kUnsupported, {"'dynamic'", "ntk"});
  ExpectChangeRefused(
      {"eurobert", "rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}},
      ErrorCode::kUnsupported, {"partial_rotary_factor"});
}

TEST(ModelFamilies, ScalingsThatMakeNoSenseAreInvalid) {
  const std::vector<std::pair<json, std::string>> cases = {
      {{{"type", "linear"}}, "factor"},
      {{{"type", "linear"}, {"factor", 0}}, "factor"},
      {{{"type", "linear"}, {"factor", "2"}}, "factor"},
      {{{"type", "linear"}, {"factor", 2}, {"beta_fast", 2}}, "beta_fast"},
      {{{"type", "default"}, {"rope_theta", -1}}, "rope_theta"},
      {{{"type", "yarn"}, {"factor", 2}, {"beta_slow", -1}}, "beta_slow"},
      {{{"type", "llama3"}, {"factor", 2}, {"low_freq_factor", 1}}, "high_freq_factor"},
      {{{"type", "llama3"}, {"factor", 2}, {"high_freq_factor", 4}}, "low_freq_factor"},
      {{{"type", "llama3"}, {"factor", 2}, {"low_freq_factor", 4}, {"high_freq_factor", 4}},
       "high_freq_factor"},
      {{{"type", 7}}, "type"},
      {{{"type", "default"}, {"unheard_of", 1}}, "unheard_of"},
  };
  for (const auto& [scaling, key] : cases) {
    ExpectChangeRefused({"eurobert_old", "rope_scaling", scaling}, ErrorCode::kInvalidArgument,
                        {"config.json: rope_scaling: " + key + " is "});
  }
  ExpectChangeRefused({"gte_new", "rope_scaling", {{"type", "ntk"}, {"factor", 2}, {"mixed_b", 1}}},
                      ErrorCode::kInvalidArgument, {"mixed_b"});
  // Two spellings at once, and types of layers that there are none of.
  ExpectChangeRefused({"eurobert", "rope_scaling", {{"type", "linear"}, {"factor", 2}}},
                      ErrorCode::kInvalidArgument, {"rope_scaling", "rope_parameters"});
  ExpectChangeRefused({"modernbert", "rope_parameters", {{"rope_theta", 2.0}}},
                      ErrorCode::kInvalidArgument, {"rope_parameters", "'rope_theta'"});
  // transformers 5 does not read the older name of the type where layers have several types.
  for (const auto* folder : {"modernbert_old", "gemma3_old"}) {
    ExpectChangeRefused({folder, "rope_scaling", {{"type", "linear"}, {"factor", 2}}},
                        ErrorCode::kInvalidArgument, {"rope_scaling", "'linear'", "rope_type"});
    ModelFolder both(kModels + folder);
    both.SetKey("rope_scaling", {{"type", "linear"}, {"rope_type", "linear"}, {"factor", 2}});
    EXPECT_TRUE(both.Open().ok()) << folder;
  }
}

TEST(ModelFamilies, HeadsThatPositionsCannotTurnAreInvalid) {
  for (const int size : {15, 5000, 2147483647}) {
    ExpectChangeRefused({"qwen3", "head_dim", size}, ErrorCode::kInvalidArgument,
                        {"config.json: heads have " + std::to_string(size)});
  }
  ModelFolder folder(kModels + "gte_new");
  folder.SetKey("rope_theta", 1e300);
  folder.SetKey("rope_scaling", {{"type", "ntk"}, {"factor", 1e300}});
  EXPECT_EQ(folder.Open().status().code(), ErrorCode::kInvalidArgument);
}

TEST(ModelFamilies, BothSpellingsSayTheSame) {
  ModelFolder old_one(kModels + "modernbert_old");
  ModelFolder new_one(kModels + "modernbert_old");
  for (const auto* key : {"global_rope_theta", "local_rope_theta", "global_attn_every_n_layers"}) {
    new_one.RemoveKey(key);
  }
  new_one.SetKey("rope_parameters", {{"full_attention", {{"rope_theta", 160000.0}}},
                                     {"sliding_attention", {{"rope_theta", 10000.0}}}});
  new_one.SetKey("layer_types",
                 {"full_attention", "sliding_attention", "sliding_attention", "full_attention"});
  const std::vector<LayerConfig> then = LayersOfFolder(old_one);
  const std::vector<LayerConfig> now = LayersOfFolder(new_one);
  ASSERT_EQ(then.size(), now.size());
  for (size_t i = 0; i < then.size(); ++i) {
    SCOPED_TRACE(i);
    const bool global = i == 0 || i == 3;
    EXPECT_EQ(then[i].rotary->theta, global ? 160000 : 10000);
    EXPECT_EQ(then[i].window, global ? std::nullopt : std::optional<size_t>(64));
    EXPECT_EQ(then[i].attention_norm, i != 0);
    EXPECT_EQ(now[i].rotary->theta, then[i].rotary->theta);
    EXPECT_EQ(now[i].window, then[i].window);
  }
  EXPECT_EQ(new_one.Decided("positions"), "rotary, theta 160000 and theta 10000");
}

TEST(ModelFamilies, DefaultsAreTransformers) {
  ModelFolder modernbert(kModels + "modernbert_old");
  for (const auto* key :
       {"global_rope_theta", "local_rope_theta", "global_attn_every_n_layers", "local_attention"}) {
    modernbert.RemoveKey(key);
  }
  const std::vector<LayerConfig> layers = LayersOfFolder(modernbert);
  EXPECT_EQ(layers[0].rotary->theta, 160000);
  EXPECT_EQ(layers[1].rotary->theta, 10000);
  EXPECT_EQ(layers[2].window, std::optional<size_t>(64));
  EXPECT_EQ(layers[3].window, std::nullopt);
  modernbert.RemoveKey("classifier_bias");  // there are no biases of the head in the file
  EXPECT_TRUE(modernbert.Open().ok()) << modernbert.Open().status().message();

  ModelFolder eurobert(kModels + "eurobert");
  eurobert.RemoveKey("max_position_embeddings");
  EXPECT_EQ((*eurobert.Open()).usual_tokens(), 8192u);

  ModelFolder gemma(kModels + "gemma3_old");
  for (const auto* key : {"rope_theta", "rope_local_base_freq", "layer_types", "sliding_window"}) {
    gemma.RemoveKey(key);
  }
  gemma.SetKey("_sliding_window_pattern", 2);
  const std::vector<LayerConfig> of_gemma = LayersOfFolder(gemma);
  EXPECT_EQ(of_gemma[0].rotary->theta, 10000);
  EXPECT_EQ(of_gemma[0].window, std::optional<size_t>(2048));
  EXPECT_EQ(of_gemma[1].rotary->theta, 1000000);
  EXPECT_EQ(of_gemma[1].window, std::nullopt);
}

// ---- What each family has for itself.

TEST(ModelFamilies, NomicsFactorWorksBeyondTheTrainedLengthOnly) {
  ModelFolder folder(kModels + "nomic_bert_old");
  EXPECT_EQ((*folder.Open()).usual_tokens(), 8192u);
  folder.SetKey("rotary_scaling_factor", 2);
  EXPECT_EQ((*folder.Open()).max_tokens(), 2048u);
  folder.SetKey("max_trained_positions", 512);
  EXPECT_EQ((*folder.Open()).max_tokens(), 512u);
}

TEST(ModelFamilies, AMarkerThatIsNullMarksNothing) {
  ModelFolder nomic(kModels + "nomic_bert");
  nomic.SetKey("n_embd", nullptr);
  EXPECT_TRUE(nomic.Open().ok()) << nomic.Open().status().message();
  ModelFolder bert(kModels + "bert");
  bert.SetKey("", "alibi");
  EXPECT_TRUE(bert.Open().ok()) << bert.Open().status().message();
}

TEST(ModelFamilies, AVariantOfJinaIsRefusedByItsTensors) {
  ModelFolder folder(kModels + "jina_bert");
  const std::vector<float> zeros(32);
  SafetensorsEntry entry{.name = "encoder.layer.0.attention.self.layer_norm_q.weight",
                         .dtype = DType::kF32,
                         .shape = Shape(32),
                         .bytes = std::as_bytes(std::span(zeros))};
  folder.ChangeWeights([](SafetensorsEntry&) { return true; }, {entry});
  EXPECT_TRUE(FailsWith(folder.Open(), {"layer_norm_q"}, ErrorCode::kUnsupported));
}

TEST(ModelFamilies, TensorsOfGtesOtherTasksAreHarmless) {
  const std::vector<float> values(6);
  std::vector<SafetensorsEntry> more;
  for (const std::string name :
       {"pooler.dense.weight", "lm_head.bias", "qa_outputs.weight", "classifier.weight"}) {
    more.push_back({name, DType::kF32, Shape(2, 3), std::as_bytes(std::span(values))});
  }
  ModelFolder folder(kModels + "gte");
  folder.SetKey("architectures", {"GteForMaskedLM"});
  folder.ChangeWeights([](SafetensorsEntry&) { return true; }, more);
  const TextModel model = Taken(folder.Open());
  EXPECT_EQ(folder.Decided("ignored"), "tensor 'classifier.weight'");
}

TEST(ModelFamilies, OthersWithoutAHeadRefuseClassifiers) {
  for (const auto* name :
       {"qwen3_pplx", "qwen3_voyage", "t5", "qwen2_gte", "clip_text", "siglip"}) {
    ExpectChangeRefused({name, "architectures", {"SomeForSequenceClassification"}},
                        ErrorCode::kUnsupported, {"architectures", "sequence classifier"});
    ModelFolder folder(kModels + name);
    folder.SetKey("architectures", {"SomeForCausalLM"});
    const TextModel model = Taken(folder.Open());
    EXPECT_FALSE(model.has_head());
  }
}

TEST(ModelFamilies, AlbertsLayersAreOne) {
  ModelFolder folder(kModels + "albert");
  folder.SetKey("num_hidden_layers", 7);  // needs no other tensors
  EXPECT_EQ(LayersOfFolder(folder).size(), 7u);
  folder.RemoveKey("hidden_act");
  EXPECT_EQ(LayersOfFolder(folder)[6].activation, Activation::kGeluTanh);
  folder.RemoveKey("num_hidden_groups");
  folder.RemoveKey("inner_group_num");
  EXPECT_EQ(LayersOfFolder(folder).size(), 7u);
}

// Frequencies of the file count, the first layer's for all; those of other sizes are refused.
TEST(ModelFamilies, EsmsFrequenciesAreTheFiles) {
  ModelFolder folder(kModels + "esm_old");
  const std::vector<LayerConfig> layers = LayersOfFolder(folder);
  ASSERT_EQ(layers.size(), 2u);
  const std::vector<double> found = layers[0].rotary->inverse_frequencies;
  EXPECT_EQ(layers[1].rotary->inverse_frequencies, found);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0], 1.0);
  EXPECT_NE(found[1], 0.1);  // in F16
  EXPECT_NEAR(found[1], 0.1, 1e-4);
  folder.SetKey("num_attention_heads", 2);
  EXPECT_TRUE(FailsWith(folder.Open(), {"inv_freq'"}, kAnyCode));
  ModelFolder absolute(kModels + "esm_1b");
  EXPECT_FALSE(LayersOfFolder(absolute)[0].rotary);
}

TEST(ModelFamilies, ASequenceOfMasksAloneIsRefused) {
  ModelFolder folder(kModels + "esm");
  const TextModel model = Taken(folder.Open());
  const std::vector<int32_t> ids = {5, 32, 32, 32};
  const std::vector<size_t> starts = {0, 2, 4};
  const Status status = model.CheckTokens({.ids = ids, .type_ids = {}, .seq_starts = starts});
  EXPECT_EQ(status.message().substr(0, 43), "sequence 1 has no token but the mask, 32; w");
  folder.SetKey("token_dropout", false);
  EXPECT_TRUE(
      (*folder.Open()).CheckTokens({.ids = ids, .type_ids = {}, .seq_starts = starts}).ok());
}

TEST(ModelFamilies, HeadsSayWhatTheyRead) {
  ModelFolder mean(kModels + "modernbert_old");
  EXPECT_EQ((*mean.Open()).head_rows(), OutputRows::kAll);
  EXPECT_EQ(mean.Decided("head"),
            "1 label: classifier(head.norm(gelu (erf)(head.dense(mean of the tokens))))");
  ModelFolder first(kModels + "modernbert_3");
  EXPECT_EQ((*first.Open()).head_rows(), OutputRows::kFirst);

  ModelFolder euro(kModels + "eurobert_3");
  EXPECT_EQ((*euro.Open()).head_rows(), OutputRows::kAll);
  EXPECT_EQ(euro.Decided("head"), "3 labels: classifier(gelu (erf)(dense(mean of the tokens)))");
  ModelFolder published(kModels + "eurobert_old_1");
  EXPECT_EQ((*published.Open()).head_rows(), OutputRows::kFirst);
  published.SetKey("clf_pooling", "late");
  EXPECT_EQ((*published.Open()).head_rows(), OutputRows::kAll);
  EXPECT_EQ(published.Decided("head").substr(0, 64),
            "1 label: mean of classifier(gelu (erf)(dense(each token))), by c");
}

}  // namespace
}  // namespace encore
