// SPDX-License-Identifier: Apache-2.0
//
// Rerankers by a language model's logits beside what sentence-transformers computes in float64, and
// what is refused.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "nlohmann/json.hpp"
#include "tests/support/compare.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/text/head_folders.h"

namespace encore {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What Describe() says of one thing.
std::vector<std::string> DecidedOf(const TextEncoder& model, const std::string& what) {
  std::vector<std::string> values;
  for (const Decision& decision : model.Describe()) {
    if (decision.what == what) values.push_back(decision.value);
  }
  return values;
}

class Rerankers : public testing::TestWithParam<const char*> {};

// Pairs by the chat template, with its end kept where they are cut; and pairs of the tokenizer's.
TEST_P(Rerankers, GiveWhatCrossEncoderGives) {
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf(GetParam())));
  const json expected = ExpectedOf(GetParam());
  std::vector<std::string> first, second;
  for (const json& pair : expected.at("pairs")) {
    first.push_back(pair[0]);
    second.push_back(pair[1]);
  }
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 2}));
  const Predictions all = Taken(model.Classify(
      first, second,
      {.executor = pool.executor(), .activation = ScoreActivation::kAsCrossEncoder}));
  EXPECT_GT(all.counts.texts_cut, 0u);
  const std::span<const float> values = ValuesOf(all.values);
  ExpectNear(values, json::array({expected.at("scores")}));
  for (size_t i = 0; i < first.size(); ++i) {
    const Scores alone = Taken(model.Score(first[i], {second[i]}));
    EXPECT_TRUE(SameBits(alone.values, values.subspan(i, 1))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Rerankers,
                         testing::Values("reranker_qwen3", "reranker_llama", "reranker_gemma3"),
                         [](const auto& test) { return std::string(test.param); });

// In a chat template the prompt is the system's message, else it is before the first text.
TEST(RerankerFolder, TakesPromptsOfCalls) {
  const std::vector<std::string> documents = {"The boat is old.", "tea"};
  const auto scores = [&](const TextEncoder& model, const ScoreOptions& options,
                          const std::string& query = "Which boat?") {
    const Result<Scores> found = model.Score(query, documents, options);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? found->values : std::vector<float>();
  };
  const TextEncoder chat = Taken(TextEncoder::Open(FolderOf("reranker_qwen3")));
  const std::vector<float> own = scores(chat, {});
  EXPECT_TRUE(SameBits(scores(chat, {.prompt_name = "mine"}), own));
  EXPECT_TRUE(SameBits(scores(chat, {.prompt = "Find the boat"}), own));
  EXPECT_FALSE(SameBits(scores(chat, {.prompt = "Find tea"}), own));
  const TemporaryFolder copy;
  fs::copy(FolderOf("reranker_qwen3"), copy.path(),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  for (const char* const prompt : {"Find tea", ""}) {
    std::ofstream(copy.File("config_sentence_transformers.json"))
        << json{{"model_type", "CrossEncoder"},
                {"prompts", {{"mine", prompt}}},
                {"default_prompt_name", "mine"},
                {"activation_fn", "torch.nn.Identity"}};
    const TextEncoder other = Taken(TextEncoder::Open(copy.path()));
    EXPECT_TRUE(SameBits(scores(chat, {.prompt = prompt}), scores(other, {}))) << prompt;
  }
  const TextEncoder plain =
      Taken(TextEncoder::Open(std::string(ENCORE_TEST_DATA_DIR) + "/text/reranker"));
  EXPECT_TRUE(SameBits(scores(plain, {.prompt = "tea: "}), scores(plain, {}, "tea: Which boat?")));
  EXPECT_EQ(plain.Score("a", {"b"}, {.prompt_name = "none such"}).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(plain.Score("a", {"b"}, {.prompt_name = "a", .prompt = "b"}).status().code(),
            ErrorCode::kInvalidArgument);
  const std::vector<std::vector<int32_t>> ids = {{5, 6}};
  EXPECT_EQ(plain.ClassifyIds(ids, {}, {.prompt = "tea"}).status().code(),
            ErrorCode::kInvalidArgument);
}

TEST(RerankerFolder, SaysWhatItDoes) {
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf("reranker_qwen3")));
  EXPECT_EQ(model.dimensions(), 0u);
  EXPECT_EQ(model.labels(), std::vector<std::string>{"LABEL_0"});
  using Values = std::vector<std::string>;
  EXPECT_EQ(DecidedOf(model, "head"),
            Values{"1 label: logit of token 20, less that of 31, after the last token"});
  EXPECT_EQ(DecidedOf(model, "scores"), Values{"identity"});
  EXPECT_EQ(DecidedOf(model, "pairs"),
            Values{"by the chat template; 3 tokens of its end stay in texts that are cut"});
  EXPECT_EQ(model.Classify({"tea"}).status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(model.Score("tea", {"a"}, {.plain_text = true}).status().code(),
            ErrorCode::kUnsupported);
  EXPECT_TRUE(model.ClassifyIds(std::vector<std::vector<int32_t>>{{5, 6}}).ok());
}

TEST(RerankerFolder, RefusesWhatItHasNot) {
  const auto refused = [](const char* file, const std::string& text,
                          const std::vector<std::string>& parts) {
    const CopiedFolder folder("reranker_gemma3");
    folder.Write(file, text);
    folder.ExpectRefused(parts);
  };
  const std::string score = "1_LogitScore/config.json";
  refused(score.c_str(), R"({"true_token_id": 300})", {"token 300", "0 .. 299"});
  refused(score.c_str(), R"({"false_token_id": 3})", {score.c_str(), "true_token_id"});
  refused(score.c_str(), R"({"true_token_id": 3, "module_input_name": "x"})",
          {"module_input_name"});
  refused("sentence_bert_config.json", "{}", {"LogitScore", "text-generation"});
  refused("sentence_bert_config.json",
          R"({"transformer_task": "text-generation", "modality_config": {"text": {
              "method": "generate", "method_output_name": "logits"}}})",
          {"modality_config"});
  const CopiedFolder folder("reranker_gemma3");
  json config = json::parse(std::ifstream(folder.path() + "/config.json"));
  config["final_logit_softcapping"] = 30;
  folder.Write("config.json", config.dump());
  folder.ExpectRefused({"final_logit_softcapping"});
}

// A template that encore cannot read leaves scores of ids.
TEST(RerankerFolder, WithAnotherTemplateTakesIdsAlone) {
  for (const auto* source : {"{% macro f() %}{% endmacro %}", "{{ messages[0].content }}"}) {
    const CopiedFolder folder("reranker_qwen3");
    folder.Write("chat_template.jinja", source);
    const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
    EXPECT_TRUE(
        FailsWith(model.Score("tea", {"a"}), {"chat_template.jinja: "}, ErrorCode::kUnsupported));
    EXPECT_TRUE(model.ClassifyIds(std::vector<std::vector<int32_t>>{{5, 6}}).ok());
    EXPECT_EQ(DecidedOf(model, "scores"), std::vector<std::string>{"identity"});
    EXPECT_EQ(DecidedOf(model, "pairs"), std::vector<std::string>{"none: scores only of ids"});
  }
}

// Without modules.json the tokens are "yes" and "no".
TEST(RerankerFolder, IsOpenedWithoutModules) {
  const CopiedFolder folder("reranker_llama");
  fs::remove(folder.path() + "/modules.json");
  const Result<TextEncoder> without = TextEncoder::Open(folder.path());  // there is no "yes"
  ASSERT_TRUE(without.ok()) << without.status().message();
  EXPECT_FALSE(without->Score("tea", {"a"}).ok());
  json tokenizer = json::parse(std::ifstream(folder.path() + "/tokenizer.json"));
  json& words = tokenizer["model"]["vocab"];
  const json before = words;
  for (const auto& [word, id] : before.items()) {
    if (id == 20) words.erase(word);
  }
  words["yes"] = 20;
  folder.Write("tokenizer.json", tokenizer.dump());
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  EXPECT_EQ(model.labels().size(), 1u);
  EXPECT_TRUE(model.Score("the harbour", {"tea"}).ok());
  EXPECT_GT(model.dimensions(), 0u);
}

}  // namespace
}  // namespace encore
