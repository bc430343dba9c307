// SPDX-License-Identifier: Apache-2.0
//
// Folders of tokenizers as transformers opens them by their class: ids and type ids are those of
// its AutoTokenizer (tests/data/tokenizer_classes.json, made by
// tests/make/make_class_fixtures.py). And what is told or refused of folders that encore opens
// otherwise.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/text/folder_files.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/safetensors_bytes.h"

namespace encore {
namespace {

using nlohmann::json;

json ReadFolderJson(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return json::parse(text.str());
}

// The tokenizer.json of a fixture, with some members replaced.
json Fixture(const std::string& name, const json& changes) {
  json file = ReadFolderJson(ENCORE_TEST_DATA_DIR "/tokenizer/" + name + ".json")["tokenizer"];
  file.update(changes);
  return file;
}

void Write(const TemporaryFolder& folder, const std::string& name, const json& content) {
  std::ofstream(folder.File(name), std::ios::binary)
      << (content.is_string() ? content.get<std::string>() : content.dump());
}

Result<internal::FolderTokenizer> Open(const TemporaryFolder& folder) {
  return internal::OpenFolderTokenizer(folder.path().string(), true);
}

void ExpectFolderCase(const internal::FolderTokenizer& folder, const json& wanted) {
  const TokenizeOptions options = {.max_length = wanted.value("max_length", size_t{0})};
  const std::string text = wanted["text"];
  Tokens tokens;
  const Status status =
      wanted.contains("pair")
          ? folder.tokenizer.EncodePair(text, wanted["pair"].get<std::string>(), &tokens, options)
          : folder.tokenizer.Encode(text, &tokens, options);
  ASSERT_TRUE(status.ok()) << status.message();
  if (!folder.type_ids) tokens.type_ids.assign(tokens.ids.size(), 0);
  EXPECT_EQ(tokens.ids, wanted["ids"].get<std::vector<int32_t>>()) << wanted;
  EXPECT_EQ(tokens.type_ids, wanted["types"].get<std::vector<uint8_t>>()) << wanted;
}

TEST(TokenizerClassesTest, EverythingIsAsAutoTokenizerHasIt) {
  size_t folders = 0;
  for (const json& wanted : ReadFolderJson(ENCORE_TEST_DATA_DIR "/tokenizer_classes.json")) {
    SCOPED_TRACE(wanted["name"].get<std::string>());
    const TemporaryFolder folder;
    if (wanted["base"].is_string()) {
      Write(folder, "tokenizer.json", Fixture(wanted["base"], wanted["changes"]));
    }
    for (const auto& [name, content] : wanted["files"].items()) {
      if (name != "config.json") {
        Write(folder, name, content);
        continue;
      }
      json config = content;  // enough of a model for its positions to be read
      const json model = {{"hidden_size", 8},
                          {"num_attention_heads", 2},
                          {"num_hidden_layers", 1},
                          {"intermediate_size", 8},
                          {"vocab_size", 1000},
                          {"type_vocab_size", 2},
                          {"max_position_embeddings", 64}};
      config.update(model);
      const std::string type = config["model_type"];
      if (type == "qwen3" || type == "gemma3_text") {
        config["num_key_value_heads"] = 2;  // else the class's own number
      }
      Write(folder, name, config);
    }
    const internal::FolderTokenizer opened = Taken(Open(folder));
    for (const json& text : wanted["cases"]) ExpectFolderCase(opened, text);
    ++folders;
  }
  EXPECT_GT(folders, 40u);  // all of them were there
}

// Whether a decision's value and source have these words.
bool FolderTells(const Tokenizer& tokenizer, const std::string& what, const std::string& value,
                 const std::string& source) {
  for (const Decision& d : tokenizer.Describe()) {
    if (d.what == what && d.value.find(value) != std::string::npos &&
        d.source.find(source) != std::string::npos)
      return true;
  }
  return false;
}

TEST(TokenizerClassesTest, DescribeTellsTheClass) {
  const TemporaryFolder folder;
  Write(folder, "tokenizer.json", Fixture("shape_bge_m3", json::object()));
  const auto tells = [&](const std::string& name, const std::string& what,
                         const std::string& value) {
    Write(folder, "tokenizer_config.json", {{"tokenizer_class", name}});
    const Result<internal::FolderTokenizer> opened = Open(folder);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() && FolderTells(opened->tokenizer, what, value, "tokenizer_config.json");
  };
  EXPECT_TRUE(
      tells("XLMRobertaTokenizer", "tokenizer", "the rest as XLMRobertaTokenizer makes it"));
  EXPECT_TRUE(tells("XLNetTokenizer", "ignored",
                    "what transformers makes of XLNetTokenizer itself; sentence-transformers may"));
  EXPECT_TRUE(tells("BertTokenizer", "ignored",
                    "BertTokenizer, whose model is not Unigram; sentence-transformers may"));
  EXPECT_FALSE(tells("PreTrainedTokenizerFast", "ignored", ""));
}

// Without a class, the model's type has one: its model need not be that of tokenizer.json, which
// counts then.
TEST(TokenizerClassesTest, ATypeWhoseClassHasAnotherModelIsTold) {
  const struct {
    const char *type, *fixture, *name, *model;
  } cases[] = {{"mpnet", "shape_roberta", "MPNetTokenizer", "BPE"},
               {"mpnet", "shape_bge_m3", "MPNetTokenizer", "Unigram"},
               {"qwen3", "shape_bge_m3", "Qwen2Tokenizer", "Unigram"},
               {"roberta", "uncased", "RobertaTokenizer", "WordPiece"},
               {"gemma3_text", "shape_xlm_r", "GemmaTokenizer", "Unigram"}};
  for (const auto& [type, fixture, name, model] : cases) {
    SCOPED_TRACE(std::string(type) + " " + fixture);
    const TemporaryFolder folder;
    Write(folder, "tokenizer.json", Fixture(fixture, json::object()));
    const Tokenizer plain = Taken(Tokenizer::Open(folder.path().string()));
    Write(folder, "config.json", {{"model_type", type}});
    const Tokenizer typed = Taken(Tokenizer::Open(folder.path().string()));
    const std::string value = std::string("what transformers makes of ") + name +
                              ", whose model is not " + model +
                              "; sentence-transformers may have other ids";
    EXPECT_TRUE(
        FolderTells(typed, "ignored", value, std::string("config.json: model_type ") + type));
    EXPECT_FALSE(FolderTells(plain, "ignored", "", ""));
    Tokens wanted, found;
    ASSERT_TRUE(plain.Encode("tea  and \u00e9t\u00e9 ", &wanted).ok());
    ASSERT_TRUE(typed.Encode("tea  and \u00e9t\u00e9 ", &found).ok());
    EXPECT_EQ(found.ids, wanted.ids);
  }
}

TEST(TokenizerClassesTest, ClassesInPythonAreRefused) {
  for (const char* const file : {"tokenizer_config.json", "config.json"}) {
    const TemporaryFolder folder;
    Write(folder, "tokenizer.json", Fixture("uncased", json::object()));
    Write(folder, file, {{"tokenizer_class", "BertJapaneseTokenizer"}, {"model_type", "bert"}});
    EXPECT_TRUE(FailsWith(Tokenizer::Open(folder.path().string()),
                          {std::string(file) + ": tokenizer_class is "
                                               "'BertJapaneseTokenizer', whose code is Python"},
                          ErrorCode::kUnsupported));
  }
}

TEST(TokenizerClassesTest, BadFilesBesideTheTokenizer) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"special_tokens_map.json", R"({"cls_token": 1})"},
      {"special_tokens_map.json", R"({"extra_special_tokens": [1]})"},
      {"special_tokens_map.json", "[]"},
      {"added_tokens.json", R"({"<new>": -1})"},
      {"added_tokens.json", R"({"": 1})"},
      {"added_tokens.json", R"({"<new>": 99999999})"},
      {"tokenizer_config.json", R"({"truncation_side": "middle"})"},
      {"tokenizer_config.json", R"({"extra_ids": 99999999})"},
      {"tokenizer_config.json", R"({"tokenizer_class": 1})"},
      {"config.json", R"({"model_type": 1})"},
  };
  for (const auto& [name, text] : files) {
    SCOPED_TRACE(text);
    const TemporaryFolder folder;
    Write(folder, "tokenizer.json", Fixture("uncased", json::object()));
    Write(folder, name, text);
    EXPECT_TRUE(FailsWith(Tokenizer::Open(folder.path().string()), {name}, kAnyCode));
  }
  const TemporaryFolder folder;
  Write(folder, "vocab.json", R"({"a": 0, "b": 1, "<s>": 2, "</s>": 3})");
  Write(folder, "merges.txt", "a b c\n");
  Write(folder, "tokenizer_config.json", {{"tokenizer_class", "RobertaTokenizer"}});
  EXPECT_TRUE(
      FailsWith(Tokenizer::Open(folder.path().string()), {"merges[0] is 'a b c'"}, kAnyCode));
}

}  // namespace
}  // namespace encore
