// SPDX-License-Identifier: Apache-2.0
//
// config.json of text models: every key is used, known to be harmless, or refused by file, key and
// value.

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/model_folder.h"

namespace encore {
namespace {

using internal::TextModel;
using nlohmann::json;

// Opens a folder that must be refused: the sentence has all of the parts.
void ExpectRefused(ModelFolder& folder, ErrorCode code, const std::vector<std::string>& parts) {
  EXPECT_TRUE(FailsWith(folder.Open(), parts, code));
}

void ExpectOpens(ModelFolder& folder) {
  const Result<TextModel> model = folder.Open();
  EXPECT_TRUE(model.ok()) << model.status().message();
}

TEST(ModelConfig, ValuesThatEncoreDoesNotComputeAreUnsupported) {
  const std::vector<std::pair<std::string, json>> cases = {
      {"position_embedding_type", "relative_key"},
      {"position_embedding_type", 1},
      {"is_causal", true},
      {"is_decoder", true},
      {"add_cross_attention", true},
      {"is_encoder_decoder", true},
      {"use_task_id", true},
      {"cross_attention_hidden_size", 32},
      {"per_layer_config", {{"0", {{"intermediate_size", 8}}}}},
      {"pruned_heads", {{"0", {1, 2}}}},
      {"quantization_config", {{"quant_method", "bitsandbytes"}}},
      {"compression_config", {{"bits", 8}}},
      {"rope_scaling", {{"type", "ntk"}}},
      {"auto_map", {{"AutoModel", "modeling_bert.JinaBertModel"}}},
      {"hidden_act", "mish"},
      {"hidden_act", "gelu_10"},
      {"model_type", "deberta"},
  };
  for (const auto& [key, value] : cases) {
    SCOPED_TRACE(key + " = " + value.dump());
    ModelFolder folder(kModels + "bert");
    folder.SetKey(key, value);
    std::vector<std::string> parts = {"config.json: " + key + " is "};
    if (value.is_string()) parts.push_back("'" + value.get<std::string>() + "'");
    ExpectRefused(folder, ErrorCode::kUnsupported, parts);
  }
}

TEST(ModelConfig, ValuesThatMakeNoSenseAreInvalid) {
  const std::vector<std::pair<std::string, json>> cases = {
      {"hidden_size", 0},
      {"hidden_size", -32},
      {"hidden_size", 32.0},
      {"hidden_size", "32"},
      {"hidden_size", 1ull << 40},
      {"hidden_size", json()},
      {"intermediate_size", 0},
      {"num_attention_heads", 5},
      {"num_attention_heads", 0},
      {"num_attention_heads", 64},
      {"num_hidden_layers", 0},
      {"num_hidden_layers", 1000000000},
      {"vocab_size", 0},
      {"vocab_size", true},
      {"max_position_embeddings", 0},
      {"type_vocab_size", 0},
      {"layer_norm_eps", -1e-5},
      {"layer_norm_eps", "1e-5"},
      {"hidden_act", 3},
      {"model_type", json()},
      {"model_type", 7},
      {"architectures", "BertModel"},
      {"architectures", {1}},
  };
  for (const auto& [key, value] : cases) {
    SCOPED_TRACE(key + " = " + value.dump());
    ModelFolder folder(kModels + "bert");
    folder.SetKey(key, value);
    ExpectRefused(folder, ErrorCode::kInvalidArgument, {"config.json: " + key});
  }
}

TEST(ModelConfig, SizesThatHaveNoDefaultMustBeThere) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"bert",
       {"model_type", "hidden_size", "num_hidden_layers", "num_attention_heads",
        "intermediate_size", "vocab_size"}},
      {"distilbert", {"dim", "n_layers", "n_heads", "hidden_dim", "vocab_size"}},
  };
  for (const auto& [name, keys] : cases) {
    for (const std::string& key : keys) {
      SCOPED_TRACE(key);
      ModelFolder folder(kModels + name);
      folder.RemoveKey(key);
      ExpectRefused(folder, ErrorCode::kInvalidArgument, {"config.json: " + key + " is absent"});
    }
  }
}

TEST(ModelConfig, OtherKeysHaveTransformersDefaults) {
  ModelFolder folder(kModels + "bert");
  for (const auto* key : {"hidden_act", "layer_norm_eps", "type_vocab_size", "pad_token_id"}) {
    folder.RemoveKey(key);
  }
  const TextModel model = Taken(folder.Open());
  EXPECT_EQ(model.type_vocab_size(), 2u);
  const LayerConfig& layer = model.encoder().config().layers[0];
  EXPECT_EQ(layer.activation, Activation::kGelu);
  EXPECT_EQ(layer.norm.epsilon, 1e-12);
  ModelFolder nomic(kModels + "nomic_bert");
  nomic.RemoveKey("type_vocab_size");
  const TextModel nomic_model = Taken(nomic.Open());
  EXPECT_EQ(nomic_model.type_vocab_size(), 2u);
  // The file has 160 rows.
  folder.RemoveKey("max_position_embeddings");
  ExpectRefused(folder, ErrorCode::kInvalidArgument,
                {"position_embeddings", "[160, 32]", "[512, 32]"});
}

TEST(ModelConfig, HarmlessKeysAreNotMentioned) {
  ModelFolder folder(kModels + "bert");
  json config = folder.Config();
  config.update(json::parse(R"({
    "_name_or_path": "x", "torch_dtype": "float32", "use_cache": false, "pruned_heads": {},
    "classifier_dropout": 0.1, "chunk_size_feed_forward": 0, "output_attentions": false,
    "position_embedding_type": "absolute", "quantization_config": null, "top_k": 50,
    "sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}})"));
  folder.SetConfig(config);
  ExpectOpens(folder);
  EXPECT_EQ(folder.Decided("ignored"), "");
}

TEST(ModelConfig, AKeyThatNoFamilyReadsIsTold) {
  ModelFolder folder(kModels + "bert");
  folder.SetKey("use_flash_bert", true);
  ExpectOpens(folder);
  EXPECT_EQ(folder.Decided("ignored"), "key 'use_flash_bert', true");
}

TEST(ModelConfig, AKeyOfOtherFamiliesIsAnErrorUnlessItIsToBeIgnored) {
  ModelFolder folder(kModels + "bert");
  folder.SetKey("rope_theta", 500);
  ExpectRefused(folder, ErrorCode::kInvalidArgument,
                {"config.json", "'rope_theta' is 500", "ignore_unknown_keys"});
  const Result<TextModel> model = folder.Open(true);
  EXPECT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(folder.Decided("ignored"), "key 'rope_theta', 500");
  // What is known to be something else stays an error.
  folder.SetKey("is_decoder", true);
  EXPECT_FALSE(folder.Open(true).ok());
}

TEST(ModelConfig, EveryKeyOfAnotherFamilyIsRefused) {
  std::istringstream keys(
      "_sliding_window_pattern activation activation_function attention_bias "
      "classifier_activation classifier_bias classifier_pooling clf_pooling d_ff d_kv "
      "d_model dim embedding_size feed_forward_proj feed_forward_type "
      "global_attn_every_n_layers global_rope_theta head_dim hidden_activation hidden_dim "
      "inner_group_num layer_norm_epsilon layer_types local_attention local_rope_theta "
      "max_trained_positions max_window_layers mlp_bias mlp_fc1_bias mlp_fc2_bias "
      "moe_every_n_layers n_embd n_head n_heads n_inner n_layer n_layers n_positions "
      "norm_bias norm_eps num_heads num_hidden_groups num_key_value_heads num_layers "
      "partial_rotary_factor prediction_head_size qkv_proj_bias query_pre_attn_scalar "
      "relative_attention_max_distance relative_attention_num_buckets rms_norm_eps "
      "rope_local_base_freq rope_theta rotary_emb_base rotary_scaling_factor "
      "sinusoidal_pos_embds sliding_window sliding_window_pattern task_type_vocab_size "
      "use_bidirectional_attention use_sliding_window ");
  for (std::string key; keys >> key;) {
    ModelFolder folder(kModels + "bert");
    folder.SetKey(key, 1);
    ExpectRefused(folder, ErrorCode::kInvalidArgument,
                  {"config.json: '" + key + "' is 1, a key that other families read"});
  }
}

TEST(ModelConfig, ActivationsGoByTransformersNames) {
  const std::vector<std::pair<std::string, Activation>> names = {
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
  ModelFolder folder(kModels + "bert");
  for (const auto& [name, activation] : names) {
    folder.SetKey("hidden_act", name);
    const TextModel model = Taken(folder.Open());
    for (const LayerConfig& layer : model.encoder().config().layers) {
      EXPECT_EQ(layer.activation, activation) << name;
    }
  }
}

TEST(ModelConfig, WhatWasDecidedIsTold) {
  ModelFolder folder(kModels + "roberta");
  ExpectOpens(folder);
  EXPECT_EQ(folder.Decided("family"), "roberta");
  EXPECT_EQ(folder.Decided("positions"), "from 6, tokens of pad_token_id at 5");
  EXPECT_EQ(folder.Decided("activation"), "gelu (erf)");
  EXPECT_EQ(folder.Decided("weights"), "F16");
  for (const Decision& decision : folder.decisions()) EXPECT_NE(decision.source, "");
}

TEST(ModelConfig, PositionsOfRobertaCountFromThePaddingId) {
  ModelFolder folder(kModels + "roberta");
  for (const json& value : {json(), json(-1), json(120), json(159), json("1")}) {
    SCOPED_TRACE(value.dump());
    folder.SetKey("pad_token_id", value);
    ExpectRefused(folder, ErrorCode::kInvalidArgument, {"config.json: pad_token_id is "});
  }
  for (const auto& [pad, max_tokens] : {std::pair(0, 159u), std::pair(1, 158u), {119, 40u}}) {
    folder.SetKey("pad_token_id", pad);
    const TextModel model = Taken(folder.Open());
    EXPECT_EQ(model.max_tokens(), max_tokens);
  }
  folder.RemoveKey("pad_token_id");
  const TextModel model = Taken(folder.Open());
  EXPECT_EQ(model.max_tokens(), 158u);  // pad_token_id 1
}

TEST(ModelConfig, PaddingMeansNothingToOtherFamilies) {
  for (const auto* name : {"bert", "electra", "distilbert"}) {
    ModelFolder folder(kModels + name);
    folder.SetKey("pad_token_id", json());
    const TextModel model = Taken(folder.Open());
    EXPECT_EQ(model.max_tokens(), 160u);
  }
}

TEST(ModelConfig, FilesThatAreNoConfiguration) {
  for (const auto* text : {"", "{", "[]", "{\"model_type\": \"bert\"} x", "{\"a\": 1, \"a\": 2}"}) {
    SCOPED_TRACE(text);
    ModelFolder folder(kModels + "bert");
    folder.Write("config.json", text);
    ExpectRefused(folder, ErrorCode::kCorruptData, {"config.json"});
  }
  ModelFolder folder(kModels + "bert");
  folder.Remove("config.json");
  ExpectRefused(folder, ErrorCode::kNotFound, {"config.json"});
}

TEST(ModelConfig, AnAdaptersFolderIsRefused) {
  ModelFolder folder(kModels + "bert");
  folder.Write("adapter_config.json", "{}");
  ExpectRefused(folder, ErrorCode::kUnsupported, {"adapter_config.json", "adapter"});
}

// ---- Heads.

TEST(ModelConfig, AHeadIsThereUnlessTheArchitectureIsOfAnotherTask) {
  const std::vector<std::pair<json, bool>> cases = {
      {{"BertForSequenceClassification"}, true},
      {json(), true},
      {json::array(), true},
      {{"BertModel"}, true},
      {{"BertForQuestionAnswering"}, false},
      {{"BertForMultipleChoice"}, false},
      {{"BertForMaskedLM"}, false},
  };
  for (const auto& [architectures, head] : cases) {
    SCOPED_TRACE(architectures.dump());
    ModelFolder folder(kModels + "bert_old");
    folder.SetKey("architectures", architectures);
    const TextModel model = Taken(folder.Open());
    EXPECT_EQ(model.has_head(), head);
    EXPECT_EQ(model.labels().size(), head ? 3u : 0u);
    // Nobody reads the classifier then.
    EXPECT_EQ(folder.Decided("ignored"),
              head ? "" : "tensors 'classifier.bias', 'classifier.weight'");
  }
}

TEST(ModelConfig, ATokenClassifierHasNoHeadOfSequences) {
  ModelFolder folder(kModels + "bert_old");
  folder.SetKey("architectures", {"BertForTokenClassification"});
  const TextModel model = Taken(folder.Open());
  EXPECT_FALSE(model.has_head());
  EXPECT_TRUE(model.labels_tokens());
  EXPECT_EQ(model.labels().size(), 3u);
}

TEST(ModelConfig, ASequenceClassifierNeedsItsTensors) {
  ModelFolder folder(kModels + "bert");
  folder.SetKey("architectures", {"BertForSequenceClassification"});
  ExpectRefused(folder, ErrorCode::kInvalidArgument, {"model.safetensors", "classifier.weight"});
  folder.SetKey("id2label", {{"0", "a"}});
  ExpectRefused(folder, ErrorCode::kInvalidArgument, {"classifier.weight", "[1, 32]"});
}

TEST(ModelConfig, LabelsComeFromId2label) {
  ModelFolder folder(kModels + "roberta_3");
  folder.SetKey("id2label", {{"2", "c"}, {"0", "a"}, {"1", 7}});
  Result<TextModel> model = folder.Open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->labels(), (std::vector<std::string>{"a", "7", "c"}));

  folder.RemoveKey("id2label");
  model = folder.Open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->labels(), (std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"}));

  for (const auto* text :
       {"{\"0\": \"a\", \"1\": \"b\", \"3\": \"c\"}", "{\"0\": \"a\", \"00\": \"b\"}",
        "{\"-1\": \"a\"}", "{\"0\": null}", "{\"0 \": \"a\"}", "[\"a\"]", "{\"\": \"a\"}"}) {
    SCOPED_TRACE(text);
    folder.SetKey("id2label", json::parse(text));
    ExpectRefused(folder, ErrorCode::kInvalidArgument, {"config.json: id2label"});
  }
  folder.RemoveKey("id2label");
  folder.SetKey("num_labels", 2);
  ExpectRefused(folder, ErrorCode::kInvalidArgument, {"config.json: num_labels is 2", "wanted 3"});
  folder.SetKey("num_labels", 3);
  ExpectOpens(folder);
  folder.RemoveKey("num_labels");
  folder.SetKey("id2label", {{"0", "a"}, {"1", "b"}});
  ExpectRefused(folder, ErrorCode::kInvalidArgument,
                {"classifier.out_proj.weight", "[3, 32]", "[2, 32]"});
}

TEST(ModelConfig, AClassifierOfNoWidthHasNoLabels) {
  // No bytes at all, and more labels than memory.
  for (const Shape& shape : {Shape(size_t{1} << 40, 0), Shape(0, 32), Shape(3), Shape(96, 1)}) {
    SCOPED_TRACE(shape.ToString());
    ModelFolder folder(kModels + "roberta_3");
    folder.RemoveKey("id2label");
    folder.ChangeWeights([&](SafetensorsEntry& e) {
      if (e.name != "classifier.out_proj.weight") return true;
      e.shape = shape;
      e.bytes = e.bytes.first(*shape.NumElements() * DTypeSize(e.dtype));
      return true;
    });
    ExpectRefused(folder, ErrorCode::kInvalidArgument,
                  {"classifier.out_proj.weight", shape.ToString(), "[labels, 32]"});
  }
}

TEST(ModelConfig, LabelsOfAModelWithoutAHeadDoNotMatter) {
  ModelFolder folder(kModels + "bert");
  folder.SetKey("id2label", {{"5", nullptr}});
  ExpectOpens(folder);
}

}  // namespace
}  // namespace encore
