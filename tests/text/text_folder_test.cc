// SPDX-License-Identifier: Apache-2.0
//
// Folders: which files count, what Describe() tells, and what is refused, by file, key and value.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "encore/text_encoder.h"
#include "engine/text/folder_files.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

using nlohmann::json;

// The value that Describe() has under this name, with its source; "" if it has none.
std::string DecidedAs(const TextEncoder& model, const std::string& what) {
  std::string text;
  for (const Decision& decision : model.Describe()) {
    if (decision.what == what) text += decision.value + " | " + decision.source + "\n";
  }
  return text;
}

class TextFolderTest : public testing::Test {
 protected:
  void SetUp() override { folder_.WriteModules(); }

  Result<TextEncoder> Open(const OpenOptions& options = {}) {
    return TextEncoder::Open(folder_.path(), options);
  }

  // Refused with all of these words; taken with ignore_unknown_keys if `ignorable`.
  void ExpectRefused(const std::vector<std::string>& words, bool ignorable = false) {
    EXPECT_TRUE(FailsWith(Open(), words, kAnyCode));
    const Result<TextEncoder> again = Open({.ignore_unknown_keys = true});
    EXPECT_EQ(again.ok(), ignorable) << again.status().message();
  }

  // A file's members patched, refused, and put back.
  void ExpectMembersRefused(const std::string& file, const json& members,
                            const std::vector<std::string>& words, bool ignorable = false) {
    const bool is_there = std::filesystem::exists(folder_.File(file));
    const json before = is_there ? folder_.ReadJson(file) : json::object();
    json changed = before;
    changed.update(members);
    folder_.WriteJson(file, changed);
    std::vector<std::string> all = words;
    all.push_back(file);
    SCOPED_TRACE(file + " " + members.dump());
    ExpectRefused(all, ignorable);
    if (is_there) {
      folder_.WriteJson(file, before);
    } else {
      std::filesystem::remove(folder_.File(file));
    }
    EXPECT_TRUE(Open().ok()) << "without " << members.dump();
  }

  TextFolder folder_;
};

TEST_F(TextFolderTest, TellsWhereEachDecisionComesFrom) {
  folder_.WriteJson("sentence_bert_config.json",
                    {{"max_seq_length", 24}, {"do_lower_case", false}});
  folder_.WriteJson("config_sentence_transformers.json",
                    {{"__version__", {{"sentence_transformers", "2.0.0"}}},
                     {"similarity_fn_name", "dot"},
                     {"truncate_dim", 16},
                     {"prompts", {{"query", "q: "}, {"document", nullptr}}},
                     {"default_prompt_name", "query"}});
  const TextEncoder model = Taken(Open());
  EXPECT_EQ(DecidedAs(model, "tokenizer"),
            "vocabulary as written, the rest as BertTokenizer makes it | tokenizer.json; "
            "tokenizer_config.json: tokenizer_class\n");
  EXPECT_EQ(DecidedAs(model, "pooling"), "mean | 1_Pooling/config.json\n");
  EXPECT_EQ(DecidedAs(model, "normalize"), "to length 1 | modules.json\n");
  EXPECT_EQ(DecidedAs(model, "maximum length"), "24 | sentence_bert_config.json\n");
  EXPECT_EQ(DecidedAs(model, "dimensions"), "16 | config_sentence_transformers.json\n");
  EXPECT_EQ(DecidedAs(model, "similarity"),
            "dot, for the caller to apply | config_sentence_transformers.json\n");
  EXPECT_EQ(DecidedAs(model, "prompt 'query'"),
            "'q: ', the default | config_sentence_transformers.json\n");
  EXPECT_EQ(model.dimensions(), 16u);
  EXPECT_EQ(model.max_dimensions(), 32u);
  for (const size_t columns : {0, 9, 24, 32}) {
    const Embeddings some = Taken(model.Encode({"tea"}, {.dimensions = columns}));
    EXPECT_EQ(some.vectors.shape()[1], columns == 0 ? 16 : columns);
  }
  EXPECT_EQ(model.max_length(), 24u);
  EXPECT_EQ(model.d_model(), 32u);
  EXPECT_EQ(model.prompts().size(), 2u);
}

TEST_F(TextFolderTest, WithoutModulesTheirFilesDoNotCount) {
  std::filesystem::remove(folder_.File("modules.json"));
  folder_.WriteJson("sentence_bert_config.json", {{"max_seq_length", 8}});
  folder_.WriteJson("config_sentence_transformers.json", {{"truncate_dim", 4}});
  const TextEncoder model = Taken(Open());
  EXPECT_EQ(model.max_length(), 40u);
  EXPECT_EQ(model.dimensions(), 32u);
  EXPECT_EQ(DecidedAs(model, "pooling"),
            "mean, without normalization | default without modules.json\n");
  const std::string ignored = DecidedAs(model, "ignored");
  EXPECT_NE(ignored.find("| sentence_bert_config.json"), std::string::npos) << ignored;
  EXPECT_NE(ignored.find("| config_sentence_transformers.json"), std::string::npos) << ignored;
}

// [CLS] and [SEP] need two.
TEST_F(TextFolderTest, AMaximumLengthWithoutRoomForSpecialTokensIsRefused) {
  const auto refused = [&](const OpenOptions& options, const std::string& words) {
    EXPECT_TRUE(FailsWith(Open(options), {words}));
  };
  refused(
      {.max_length = 1},
      "max_length is 1; wanted 2 to 40, the tokenizer's special tokens and the model's positions");
  refused({.max_length = 0}, "max_length is 0; wanted 2");
  refused({.max_length = 41}, "max_length is 41; wanted 2");
  const TextEncoder model = Taken(Open({.max_length = 2}));
  EXPECT_TRUE(model.Encode({"tea"}).ok());
  folder_.WriteJson("sentence_bert_config.json", {{"max_seq_length", 1}});
  refused({},
          "sentence_bert_config.json: the maximum length is 1; wanted at least 2, the tokenizer's "
          "special tokens");
  EXPECT_TRUE(Open({.max_length = 3}).ok());
}

TEST_F(TextFolderTest, TheMaximumLengthIsTheLeastSurprising) {
  const auto length = [&](const std::string& source) {
    const TextEncoder model = Taken(Open());
    EXPECT_NE(DecidedAs(model, "maximum length").find("| " + source), std::string::npos)
        << DecidedAs(model, "maximum length");
    return model.max_length();
  };
  // The tokenizer says 512, which the model's 40 positions cap.
  EXPECT_EQ(length("config.json"), 40u);
  folder_.PatchJson("tokenizer_config.json", {{"model_max_length", 30}});
  EXPECT_EQ(length("tokenizer_config.json"), 30u);
  folder_.WriteJson("sentence_bert_config.json", {{"max_seq_length", 35}});
  EXPECT_EQ(length("sentence_bert_config.json"), 35u);
  folder_.WriteJson("sentence_bert_config.json", {{"max_seq_length", 41}});
  EXPECT_EQ(length("config.json"), 40u);
  EXPECT_NE(DecidedAs(*Open(), "ignored").find("maximum length 41"), std::string::npos);
  folder_.WriteJson("sentence_bert_config.json", {{"max_seq_length", nullptr}});
  EXPECT_EQ(length("tokenizer_config.json"), 30u);
  ExpectMembersRefused("sentence_bert_config.json", {{"max_seq_length", 0}}, {"maximum length"});
}

TEST_F(TextFolderTest, RefusesUnfitModules) {
  const auto refused = [&](const json& modules, const std::vector<std::string>& words) {
    folder_.WriteJson("modules.json", modules);
    ExpectRefused(words);
  };
  const auto module = [](const std::string& type, const std::string& path) {
    return json{{"idx", 0}, {"name", "0"}, {"path", path}, {"type", type}};
  };
  const std::string models = "sentence_transformers.models.";
  const json transformer = module(models + "Transformer", "");
  const json pooling = module(models + "Pooling", "1_Pooling");
  refused(json::object(), {"modules.json", "an object", "array"});
  refused(json::array(), {"modules.json", "Transformer"});
  refused({transformer, pooling, module(models + "CNN", "2_CNN")},
          {"modules.json", "[2]", "type", "'sentence_transformers.models.CNN'"});
  refused({transformer, pooling, module("custom_st.Pooler", "")}, {"'custom_st.Pooler'"});
  refused({module("custom_st.Transformer", ""), pooling},
          {"'custom_st.Transformer'", "lora_adaptations"});
  refused({transformer, pooling, module(models + "LayerNorm", "2")}, {"LayerNorm"});
  refused({pooling, transformer}, {"modules.json", "order"});
  refused({transformer, module(models + "Normalize", "2")}, {"order"});
  refused({transformer, pooling, pooling}, {"order"});
  for (const std::string name : {"LogitScore", "SpladePooling"}) {
    refused({module(models + "StaticEmbedding", ""), module(models + name, "1")}, {"order"});
  }
  for (const std::string path : {"../other", "/tmp", "a/../../b", "c:\\d", ".."}) {
    refused({transformer, module(models + "Pooling", path)}, {"path", "within"});
  }
  refused({module(models + "Transformer", "0_Transformer"), pooling}, {"0_Transformer"});
  refused({transformer, module(models + "Pooling", "7_Pooling")}, {"7_Pooling/config.json"});
  json with_arguments = transformer;
  with_arguments["kwargs"] = {"task"};
  refused({with_arguments, pooling}, {"kwargs"});
  refused({transformer, 3}, {"[1]", "3", "object"});
}

TEST_F(TextFolderTest, RefusesUnfitPooling) {
  const std::string file = "1_Pooling/config.json";
  ExpectMembersRefused(file, {{"include_prompt", "no"}}, {"include_prompt", "'no'"});
  ExpectMembersRefused(file, {{"word_embedding_dimension", 31}}, {"31", "32"});
  ExpectMembersRefused(file, {{"embedding_dimension", 64}}, {"64", "32"});
  ExpectMembersRefused(file, {{"pooling_mode", "median"}}, {"'median'", "weightedmean"});
  ExpectMembersRefused(file, {{"pooling_mode", json::array()}}, {"pooling_mode"});
  ExpectMembersRefused(file, {{"pooling_mode", {"mean", 3}}}, {"pooling_mode"});
  ExpectMembersRefused(file, {{"pooling_mode_cls_token", 1}}, {"pooling_mode_cls_token"});
  ExpectMembersRefused(file, {{"pooling_mode_attention", true}}, {"'pooling_mode_attention'"},
                       true);
}

TEST_F(TextFolderTest, RefusesUnfitTransformerSettings) {
  const std::string file = "sentence_bert_config.json";
  const auto refused = [&](const json& members, const std::vector<std::string>& words,
                           bool ignorable = false) {
    ExpectMembersRefused(file, members, words, ignorable);
  };
  refused({{"max_seq_length", -1}}, {"max_seq_length", "-1"});
  refused({{"max_seq_length", 12.5}}, {"max_seq_length"});
  refused({{"max_seq_length", "24"}}, {"max_seq_length", "'24'"});
  refused({{"do_lower_case", "no"}}, {"do_lower_case"});
  refused({{"transformer_task", "fill-mask"}}, {"transformer_task", "'fill-mask'"});
  refused({{"module_output_name", "sentence_embedding"}}, {"module_output_name"});
  refused({{"modality_config", {{"image", json::object()}}}}, {"modality_config"});
  refused({{"modality_config",
            {{"text", {{"method", "encode"}, {"method_output_name", "last_hidden_state"}}}}}},
          {"modality_config"});
  refused({{"processing_kwargs", {{"text", {{"max_length", 3}}}}}}, {"processing_kwargs"});
  refused({{"tokenizer_args", {{"use_fast", false}}}}, {"tokenizer_args", "'use_fast'"});
  refused({{"model_args", {{"trust_remote_code", true}, {"revision", "x"}}}}, {"'revision'"});
  refused({{"model_args", {"trust_remote_code"}}}, {"model_args"});
  refused({{"query_length", 32}}, {"query_length", "32"});
  refused({{"query_expansion", {{"length", 32}}}}, {"query_expansion"});
  refused({{"max_length", 32}}, {"'max_length'"}, true);
  folder_.WriteJson(
      file,
      {{"processing_kwargs", json::object()}, {"query_length", nullptr}, {"unpad_inputs", true}});
  EXPECT_TRUE(Open().ok());
  // As Jina v2 and others are published: arguments that change nothing here.
  folder_.WriteJson(file, {{"max_seq_length", 24},
                           {"do_lower_case", false},
                           {"model_args", {{"trust_remote_code", true}}},
                           {"tokenizer_args", {{"padding_side", "left"}}},
                           {"config_args", {{"use_memory_efficient_attention", false}}},
                           {"model_kwargs", {{"dtype", "auto"}, {"attn_implementation", "sdpa"}}}});
  const TextEncoder published = Taken(Open());
  EXPECT_EQ(published.max_length(), 24u);
}

// Callers may have a prompt of their own.
TEST_F(TextFolderTest, RefusesCallsOfAnAbsentDefaultPrompt) {
  folder_.WriteJson("config_sentence_transformers.json",
                    {{"prompts", {{"a", "b"}}}, {"default_prompt_name", "c"}});
  const TextEncoder model = Taken(Open());
  EXPECT_TRUE(model.Encode({"tea"}, {.prompt_name = "a"}).ok());
  EXPECT_TRUE(model.Encode({"tea"}, {.prompt = ""}).ok());
  const Status status = model.Encode({"tea"}).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "config_sentence_transformers.json: default_prompt_name is 'c'; wanted one of 'a'");
}

TEST_F(TextFolderTest, RefusesUnfitSentenceSettings) {
  const std::string file = "config_sentence_transformers.json";
  const auto refused = [&](const json& members, const std::vector<std::string>& words,
                           bool ignorable = false) {
    ExpectMembersRefused(file, members, words, ignorable);
  };
  refused({{"prompts", {"a"}}}, {"prompts"});
  refused({{"prompts", {{"a", 1}}}}, {"prompts"});
  refused({{"truncate_dim", 0}}, {"truncate_dim"});
  refused({{"truncate_dim", "many"}}, {"truncate_dim"});
  refused({{"model_type", "Other"}}, {"'SparseEncoder'"});
  folder_.WriteJson(file, {{"normalize_all", true}});
  EXPECT_NE(DecidedAs(*Open(), "ignored").find("unknown key 'normalize_all' | " + file),
            std::string::npos);
  folder_.Write(file, "{\"prompts\": {\"a\": ");
  ExpectRefused({file});
}

TEST_F(TextFolderTest, RefusesUnfitDenseModules) {
  folder_.WriteModules({"Dense"});
  const std::string file = "2_Dense/config.json";
  ExpectRefused({file});
  const json good = {{"in_features", 32}, {"out_features", 20}};
  folder_.WriteJson(file, good);
  ExpectRefused({"2_Dense/model.safetensors"});
  folder_.Write("2_Dense/pytorch_model.bin", "PK");
  ExpectRefused({"2_Dense/pytorch_model.bin", "model.safetensors", "python"});
  folder_.AddDense("2_Dense", "2_Dense");
  ASSERT_TRUE(Open().ok()) << Open().status().message();
  const auto refused = [&](const json& members, const std::vector<std::string>& words,
                           bool ignorable = false) {
    ExpectMembersRefused(file, members, words, ignorable);
  };
  refused({{"in_features", 31}}, {"31", "32"});
  refused({{"activation_function", "torch.nn.modules.activation.PReLU"}}, {"PReLU", "GELU"});
  refused({{"activation_function", "transformers.activations.NewGELUActivation"}}, {"NewGELU"});
  refused({{"module_input_name", "token_embeddings"}}, {"module_input_name"});
  refused({{"module_output_name", "scores"}}, {"module_output_name"});
  folder_.PatchJson(file, {{"use_residual", true}});
  ExpectRefused({"residual.weight"});
  folder_.PatchJson(file, {{"use_residual", false}, {"dropout", 0.1}});
  EXPECT_NE(DecidedAs(*Open(), "ignored").find("unknown key 'dropout' | " + file),
            std::string::npos);
  folder_.WriteJson(file, {{"in_features", 32}, {"out_features", 21}});
  ExpectRefused({"linear.weight", "[20, 32]", "[21, 32]"});
  folder_.WriteJson(file, {{"in_features", 32}, {"out_features", 20}, {"bias", false}});
  ExpectRefused({"'linear.bias'"});
}

TEST_F(TextFolderTest, RefusesNormalizationsOfOtherThings) {
  ExpectMembersRefused("2_Normalize/config.json", {{"module_input_name", "token_embeddings"}},
                       {"module_input_name"});
}

TEST_F(TextFolderTest, AnUnknownActivationIsForTheCallerToReplace) {
  const TextFolder reranker("reranker");
  reranker.PatchJson("config.json", {{"sentence_transformers",
                                      {{"activation_fn", "torch.nn.modules.activation.PReLU"}}}});
  const TextEncoder model = Taken(TextEncoder::Open(reranker.path()));
  EXPECT_TRUE(FailsWith(model.Score("a", {"b"}), {"activation.PReLU"}, ErrorCode::kUnsupported));
  EXPECT_TRUE(model.Score("a", {"b"}, {.activation = ScoreActivation::kIdentity}).ok());
}

TEST_F(TextFolderTest, ActivationsPrecedence) {
  const auto decided = [](const json& config) {
    const TextFolder reranker("reranker");
    reranker.PatchJson("config.json", config);
    const Result<TextEncoder> model = TextEncoder::Open(reranker.path());
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? DecidedAs(*model, "scores") : "";
  };
  const std::string sigmoid = "torch.nn.modules.activation.Sigmoid";
  const std::string identity = "torch.nn.modules.linear.Identity";
  EXPECT_EQ(decided(json::object()), "sigmoid | default for one label\n");
  EXPECT_EQ(decided({{"sbert_ce_default_activation_function", identity}}),
            "identity | config.json\n");
  EXPECT_EQ(decided({{"sentence_transformers", {{"activation_fn", sigmoid}}},
                     {"sbert_ce_default_activation_function", identity}}),
            "sigmoid | config.json: sentence_transformers\n");
  EXPECT_EQ(decided({{"sentence_transformers", {{"activation_fn", nullptr}}},
                     {"sbert_ce_default_activation_function", identity}}),
            "sigmoid | default for one label\n");
  EXPECT_EQ(decided({{"sentence_transformers", {{"version", "4.0"}}},
                     {"sbert_ce_default_activation_function", identity}}),
            "identity | config.json\n");
}

TEST_F(TextFolderTest, TypeIdsAreGivenWhereTheTokenizerSaysSo) {
  const auto score = [](const json& members) {
    const TextFolder reranker("reranker");
    reranker.PatchJson("tokenizer_config.json", members);
    const TextEncoder model = Taken(TextEncoder::Open(reranker.path()));
    return (*model.Score("the bread", {"a baker"})).values[0];
  };
  const float with = score(json::object());
  const float without = score({{"model_input_names", {"input_ids", "attention_mask"}}});
  EXPECT_NE(with, without);
  EXPECT_EQ(score({{"model_input_names", {"input_ids", "token_type_ids", "attention_mask"}}}),
            with);
  EXPECT_EQ(score({{"tokenizer_class", "PreTrainedTokenizerFast"}}), without);
  EXPECT_EQ(score({{"tokenizer_class", "PreTrainedTokenizerFast"},
                   {"model_input_names", {"input_ids", "token_type_ids"}}}),
            with);
  const TextFolder reranker("reranker");
  reranker.PatchJson("tokenizer_config.json", {{"tokenizer_class", "TokenizersBackend"}});
  const TextEncoder model = Taken(TextEncoder::Open(reranker.path()));
  EXPECT_EQ(DecidedAs(model, "type ids"),
            "all 0, as the tokenizer's class is TokenizersBackend (transformers 4 gave a pair's "
            "second text others) | tokenizer_config.json: tokenizer_class\n");
}

TEST_F(TextFolderTest, PromptsAreFoundByName) {
  folder_.WriteJson("config_sentence_transformers.json",
                    {{"prompts", {{"query", "q: "}, {"passage", "p: "}}}});
  const TextEncoder model = Taken(Open());
  const auto refused = [&](const EncodeOptions& options, const std::string& word) {
    EXPECT_TRUE(FailsWith(model.Encode({"a"}, options), {word}));
  };
  refused({.prompt_name = "document"}, "'passage'");
  refused({.prompt_name = "query", .prompt = "a"}, "at most one");
  refused({.dimensions = 33}, "33");
  const std::vector<std::vector<int32_t>> ids = {{2, 9, 3}};
  for (const EncodeOptions& options :
       {EncodeOptions{.prompt_name = "query"}, EncodeOptions{.prompt = "q: "}}) {
    EXPECT_TRUE(FailsWith(model.EncodeIds(ids, options), {"found a prompt"}));
  }
}

TEST_F(TextFolderTest, TheOptionsNormalizationIsTold) {
  for (const bool normalize : {false, true}) {
    const TextEncoder model = Taken(TextEncoder::Open(folder_.path(), {.normalize = normalize}));
    EXPECT_NE(DecidedAs(model, "normalize")
                  .find(normalize ? "to length 1 | option normalize\n" : "no | option normalize\n"),
              std::string::npos);
  }
}

TEST_F(TextFolderTest, VectorsAreCutToAnyNumberOfDimensions) {
  const TextEncoder model = Taken(Open());
  const Embeddings all = Taken(model.Encode({"a"}, {.dimensions = 0}));
  EXPECT_EQ(all.vectors.shape(), Shape(1, model.dimensions()));
  for (const size_t dimensions : {size_t{1}, size_t{2}, model.dimensions()}) {
    const Embeddings cut = Taken(model.Encode({"a"}, {.dimensions = dimensions}));
    EXPECT_EQ(cut.vectors.shape(), Shape(1, dimensions));
  }
}

TEST_F(TextFolderTest, WithoutATokenizerIdsCanBeEncoded) {
  std::filesystem::remove(folder_.File("tokenizer.json"));
  std::filesystem::remove(folder_.File("tokenizer_config.json"));
  const TextEncoder model = Taken(Open());
  EXPECT_FALSE(model.has_tokenizer());
  EXPECT_TRUE(DecidedAs(model, "tokenizer").starts_with("none: ids only | "));
  EXPECT_EQ(model.max_length(), 40u);
  EXPECT_EQ(model.Encode({"a"}).status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(model.EncodeTokens("a").status().code(), ErrorCode::kUnsupported);
  const std::vector<std::vector<int32_t>> ids = {{2, 9, 3}};
  EXPECT_TRUE(model.EncodeIds(ids).ok());
}

TEST_F(TextFolderTest, ATextWithoutTokensIsRefused) {
  folder_.PatchJson("tokenizer.json", {{"post_processor", nullptr}});
  folder_.PatchJson("tokenizer_config.json", {{"tokenizer_class", "TokenizersBackend"}});
  const TextEncoder model = Taken(Open());
  EXPECT_TRUE(model.Encode({"a"}).ok());
  EXPECT_TRUE(FailsWith(model.Encode({"a", ""}), {"texts[1]: no tokens"}));
}

// As `encore tokenize` opens folders.
TEST_F(TextFolderTest, ATokenizerAloneNeedsNoModel) {
  const auto most = [&] {
    const Result<internal::FolderTokenizer> opened =
        internal::OpenFolderTokenizer(folder_.path(), false);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? opened->max_length : size_t{99};
  };
  EXPECT_EQ(most(), 40u);
  std::filesystem::remove(folder_.File("config.json"));
  EXPECT_EQ(most(), 512u);
  folder_.PatchJson("tokenizer_config.json", {{"model_max_length", nullptr}});
  EXPECT_EQ(most(), 0u) << "nothing says how many";
}

TEST_F(TextFolderTest, WithoutAPoolingModuleThereAreNoVectors) {
  folder_.WriteJson("modules.json", {{{"idx", 0},
                                      {"name", "0"},
                                      {"path", ""},
                                      {"type", "sentence_transformers.models.Transformer"}}});
  const TextEncoder model = Taken(Open());
  EXPECT_EQ(model.dimensions(), 0u);
  EXPECT_TRUE(FailsWith(model.Encode({"a"}), {"Pooling"}, ErrorCode::kUnsupported));
  EXPECT_TRUE(model.EncodeTokens("a").ok());
  OpenOptions options;
  options.pooling = {PoolingMode::kCls};
  const TextEncoder pooled = Taken(Open(options));
  EXPECT_TRUE(pooled.Encode({"a"}).ok());
}

TEST_F(TextFolderTest, RefusesFoldersThatAreNone) {
  EXPECT_EQ(TextEncoder::Open(folder_.path() + "/none").status().code(), ErrorCode::kNotFound);
  EXPECT_EQ(TextEncoder::Open(folder_.File("config.json")).status().code(),
            ErrorCode::kInvalidArgument);
  const TemporaryFolder empty;
  EXPECT_EQ(TextEncoder::Open(empty.path().string()).status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace encore
