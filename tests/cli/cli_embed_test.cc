// SPDX-License-Identifier: Apache-2.0
//
// `encore embed`, `encore rerank` and `encore info FOLDER`: formats, options, and what they refuse.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "encore/cpu.h"
#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/compare.h"
#include "tests/support/model_folder.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

class CliEmbedTest : public CliTest {
 protected:
  CliEmbedTest() {
    folder_.WriteModules();
    folder_.WriteJson("sentence_bert_config.json", {{"max_seq_length", 24}});
    folder_.WriteJson("config_sentence_transformers.json", {{"prompts", {{"query", "the "}}}});
  }

  std::vector<std::string> Arguments(const std::vector<std::string>& more = {},
                                     const std::string& output = "v.npy") const {
    std::vector<std::string> arguments = {"embed",   "--model",  folder_.path(), "--input",
                                          Path("x"), "--output", Path(output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The library's vectors of these texts.
  std::vector<float> Library(const std::vector<std::string>& texts,
                             const EncodeOptions& options = {}) const {
    const Result<TextEncoder> model = TextEncoder::Open(folder_.path());
    const Result<Embeddings> all = model->Encode(texts, options);
    EXPECT_TRUE(all.ok()) << all.status().message();
    const auto* data = static_cast<const float*>(all->vectors.data());
    return std::vector<float>(data, data + all->vectors.size_bytes() / sizeof(float));
  }

  // The numbers of an npy file with a header for this shape.
  std::vector<float> Npy(const std::string& name, size_t rows, size_t columns) const {
    const std::string bytes = ReadFile(Path(name));
    EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\0", 8));
    EXPECT_GE(bytes.size(), 256u);
    if (bytes.size() < 256) return {};
    const size_t length = static_cast<uint8_t>(bytes[8]) + 256u * static_cast<uint8_t>(bytes[9]);
    EXPECT_EQ((10 + length) % 64, 0u);
    const std::string header = bytes.substr(10, length);
    EXPECT_EQ(header.back(), '\n');
    const std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                                   std::to_string(rows) + ", " + std::to_string(columns) + "), }";
    EXPECT_EQ(header.substr(0, header.find_last_not_of(" \n") + 1), dictionary);
    std::vector<float> values((bytes.size() - 10 - length) / sizeof(float));
    if (values.empty()) return values;  // memcpy takes no null pointer, of no bytes either
    std::memcpy(values.data(), bytes.data() + 10 + length, values.size() * sizeof(float));
    return values;
  }

  std::vector<float> Embed(const std::string& input, size_t rows,
                           const std::vector<std::string>& more = {}, size_t columns = 32) {
    WriteFile(Path("x"), input);
    const CliResult result = Encore(Arguments(more));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    out_ = result.out;
    return Npy("v.npy", rows, columns);
  }

  TextFolder folder_;
  std::string out_;
};

TEST_F(CliEmbedTest, ALineIsAText) {
  const std::vector<float> want = Library({"the harbour", "", " tea\t", "bread"});
  EXPECT_TRUE(SameBits(Embed("the harbour\n\n tea\t\nbread\n", 4), want));
  EXPECT_NE(out_.find("4 texts, "), std::string::npos) << out_;
  EXPECT_NE(out_.find("no text cut"), std::string::npos) << out_;
  EXPECT_TRUE(SameBits(Embed("the harbour\r\n\r\n tea\t\r\nbread", 4), want));
  EXPECT_TRUE(Embed("", 0).empty());
  EXPECT_TRUE(SameBits(Embed("\n", 1), Library({""})));
}

TEST_F(CliEmbedTest, JsonLinesHoldAnyText) {
  const std::string input =
      "\"the\\nharbour\"\n{\"id\": 3, \"text\": \"caf\\u00e9 \\ud83d\\ude00\"}\n";
  const std::vector<float> got = Embed(input, 2, {"--jsonl"});
  EXPECT_TRUE(SameBits(got, Library({"the\nharbour", "caf\u00e9 \U0001F600"})));
}

TEST_F(CliEmbedTest, FormatsAgree) {
  const std::vector<float> want = Library({"the harbour", "tea"});
  WriteFile(Path("x"), "the harbour\ntea\n");
  ASSERT_EQ(Encore(Arguments({}, "v.safetensors")).status, 0);
  const SafetensorsFile file = Taken(SafetensorsFile::Open(Path("v.safetensors")));
  const TensorView<const float> vectors = Taken(file.ViewF32("vectors"));
  ASSERT_EQ(vectors.shape(), Shape(2, 32));
  EXPECT_TRUE(SameBits({vectors.data(), 64}, want));

  ASSERT_EQ(Encore(Arguments({}, "v.jsonl")).status, 0);
  std::istringstream lines(ReadFile(Path("v.jsonl")));
  std::vector<float> read;
  std::string line;
  while (std::getline(lines, line)) {
    const auto row = nlohmann::json::parse(line).get<std::vector<double>>();
    EXPECT_EQ(row.size(), 32u);
    for (const double value : row) read.push_back(static_cast<float>(value));
  }
  EXPECT_TRUE(SameBits(read, want));
}

TEST_F(CliEmbedTest, OptionsAreTheLibrarys) {
  const std::vector<std::string> texts = {"the harbour [SEP]", "tea"};
  const std::string input = "the harbour [SEP]\ntea\n";
  const auto expect = [&](const std::vector<std::string>& more, const EncodeOptions& options,
                          size_t columns = 32) {
    SCOPED_TRACE(more[0]);
    EXPECT_TRUE(SameBits(Embed(input, 2, more, columns), Library(texts, options)));
  };
  expect({"--prompt-name", "query"}, {.prompt_name = "query"});
  expect({"--prompt", "a baker "}, {.prompt = "a baker "});
  expect({"--no-prompt"}, {.prompt = ""});
  expect({"--no-normalize"}, {.normalize = false});
  expect({"--normalize", "--no-normalize"}, {.normalize = false});
  expect({"--dimensions", "5"}, {.dimensions = 5}, 5);
  expect({"--dimensions", "5", "--normalize"}, {.normalize = true, .dimensions = 5}, 5);
  expect({"--max-length", "4"}, {.max_length = 4});
  EXPECT_NE(out_.find("1 text cut to 4 tokens"), std::string::npos) << out_;
  expect({"--plain-text"}, {.plain_text = true});
  expect({"--batch-tokens", "3", "--threads", "2"}, {});
  for (const std::string& target : SupportedTargets()) {
    if (target.starts_with("AVX")) expect({"--target", target}, {});
  }
}

TEST_F(CliEmbedTest, ManyLinesInBoundedChunks) {
  std::string input;
  for (size_t i = 0; i < 20000; ++i) input += i % 3 == 0 ? "tea\n" : "\n";
  const std::vector<float> got = Embed(input, 20000, {"--threads", "2"});
  const std::vector<float> tea = Library({"tea"});
  const std::vector<float> none = Library({""});
  ASSERT_EQ(got.size(), 20000u * 32);
  for (size_t i = 0; i < 20000; ++i) {
    ASSERT_TRUE(SameBits({got.data() + 32 * i, 32}, i % 3 == 0 ? tea : none)) << i;
  }
  input += "bread \xFF\n";
  WriteFile(Path("x"), input);
  ExpectRefused(Arguments(), {"line 20001"});
  EXPECT_EQ(Embed(input, 20001, {"--replace-invalid"}).size(), 20001u * 32);
}

TEST_F(CliEmbedTest, RefusesWhatItCannotDo) {
  WriteFile(Path("x"), "tea\nthe harbour lies between two hills\n");
  const auto refused = [&](const std::vector<std::string>& more,
                           const std::vector<std::string>& words) {
    ExpectRefused(Arguments(more), words);
    EXPECT_EQ(Files(), std::vector<std::string>{"x"});
  };
  refused({"--precision", "f64"}, {"--precision", "f64", "f32", "bf16", "int8"});
  refused({"--on-long", "error", "--max-length", "4"}, {"line 2", "4"});
  refused({"--max-length", "41"}, {"41", "40"});
  refused({"--dimensions", "33"}, {"33", "32"});
  refused({"--prompt-name", "passage"}, {"'passage'", "'query'"});
  refused({"--prompt-name", "query", "--prompt", "a"}, {"--prompt"});
  refused({"--target", "MMX"}, {"--target", "MMX"});
  refused({"--jsonl"}, {"line 1"});
  ExpectRefused(Arguments({}, "v.txt"), {"--output", ".npy"});
  ExpectRefused(Arguments({}, "none/v.npy"), {"--output", "none"});
  ExpectRefused({"embed", "--model", Path("none"), "--input", Path("x"), "--output", Path("v.npy")},
                {"--model", Path("none")});
  ExpectRefused(
      {"embed", "--model", folder_.path(), "--input", Path("none"), "--output", Path("v.npy")},
      {"--input", Path("none")});
  ExpectRefused(
      {"embed", "--model", folder_.path(), "--input", folder_.path(), "--output", Path("v.npy")},
      {"--input", "folder"});
  WriteFile(Path("x"), "{\"text\": \"a\", \"pair\": \"b\"}\n");
  refused({"--jsonl"}, {"line 1", "pair"});
  WriteFile(Path("v.npy"), "as it was");
  ExpectRefused(Arguments({"--jsonl"}), {"line 1"});
  EXPECT_EQ(ReadFile(Path("v.npy")), "as it was");
}

class CliRerankTest : public CliTest {
 protected:
  std::vector<std::string> Arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"rerank",  "--model", folder_.path(), "--query",
                                          "the tea", "--input", Path("x")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::vector<float> Library(const std::vector<std::string>& texts) const {
    const TextEncoder model = *TextEncoder::Open(folder_.path());
    return (*model.Score("the tea", texts)).values;
  }

  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    std::string line;
    while (std::getline(in, line)) lines.push_back(line);
    return lines;
  }

  TextFolder folder_{"reranker"};
};

TEST_F(CliRerankTest, BestFirst) {
  const std::vector<std::string> texts = {"the harbour", "tea", "", "a baker", "tea"};
  WriteFile(Path("x"), "the harbour\ntea\n\na baker\ntea\n");
  const std::vector<float> scores = Library(texts);
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  const auto expect = [&](const std::vector<std::string>& lines, size_t count) {
    ASSERT_EQ(lines.size(), count);
    for (size_t i = 0; i < count; ++i) {
      const size_t tab = lines[i].find('\t');
      EXPECT_EQ(std::strtof(lines[i].c_str(), nullptr), scores[order[i]]);
      EXPECT_EQ(lines[i].substr(tab + 1), texts[order[i]]);
    }
  };
  const CliResult all = Encore(Arguments());
  ASSERT_EQ(all.status, 0) << all.err;
  expect(Lines(all.out), 5);
  EXPECT_NE(all.err.find("5 texts"), std::string::npos);
  expect(Lines(Encore(Arguments({"--top", "2"})).out), 2);

  const std::vector<std::string> lines = Lines(Encore(Arguments({"--scores"})).out);
  ASSERT_EQ(lines.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(std::strtof(lines[i].c_str(), nullptr), scores[i]);

  WriteFile(Path("x"), "tea\r\nbread\r\n");
  EXPECT_EQ(Encore(Arguments()).out.find('\r'), std::string::npos);
}

TEST_F(CliRerankTest, JsonLinesKeepIdAndIndex) {
  const std::vector<std::string> texts = {"a\tb\nc", "tea", "bread"};
  WriteFile(Path("x"), "\"a\\tb\\nc\"\n{\"id\": 7, \"text\": \"tea\"}\n" +
                           std::string("{\"text\": \"bread\", \"id\": \"b\"}\n"));
  const std::vector<float> scores = Library(texts);
  const nlohmann::json ids = {nullptr, 7, "b"};
  const std::vector<std::string> lines = Lines(Encore(Arguments({"--jsonl"})).out);
  ASSERT_EQ(lines.size(), 3u);
  float before = std::numeric_limits<float>::infinity();
  std::vector<size_t> seen;
  for (const std::string& line : lines) {
    const nlohmann::json json = nlohmann::json::parse(line);
    const size_t index = json["index"];
    ASSERT_LT(index, 3u);
    seen.push_back(index);
    EXPECT_EQ(json["text"], texts[index]);
    EXPECT_EQ(json["score"].get<float>(), scores[index]);
    EXPECT_LE(scores[index], before);
    before = scores[index];
    EXPECT_EQ(json.contains("id"), index != 0) << line;
    EXPECT_EQ(json.value("id", nlohmann::json()), ids[index]);
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2}));
  WriteFile(Path("x"), "id,text\n17,\"two\nlines\"\n");
  const nlohmann::json row = nlohmann::json::parse(Encore(Arguments({"--format", "csv"})).out);
  EXPECT_EQ(row["id"], "17");
  EXPECT_EQ(row["text"], "two\nlines");
}

TEST_F(CliRerankTest, RefusesWhatItCannotDo) {
  WriteFile(Path("x"), "tea\n");
  ExpectRefused(Arguments({"--top", "2", "--scores"}), {"--top"});
  ExpectRefused(Arguments({"--precision", "int2"}), {"--precision", "int2"});
  const TextFolder base;
  ExpectRefused({"rerank", "--model", base.path(), "--query", "a", "--input", Path("x")},
                {"--model", "classification head"});
  WriteFile(Path("x"), "tea\n\xFF\n");
  ExpectRefused(Arguments(), {"line 2"});
}

TEST_F(CliEmbedTest, InfoTellsWhatAFolderMeans) {
  const CliResult text = Encore({"info", folder_.path()});
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* word : {"pooling", "1_Pooling/config.json", "24 tokens", "32 columns", "query",
                           "modules.json", "300 tokens", "2 of width 32"}) {
    EXPECT_NE(text.out.find(word), std::string::npos) << word << "\n" << text.out;
  }
  const CliResult result = Encore({"info", folder_.path(), "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["d_model"], 32);
  EXPECT_EQ(json["dimensions"], 32);
  EXPECT_EQ(json["max_length"], 24);
  EXPECT_EQ(json["prompts"]["query"], "the ");
  EXPECT_EQ(json["weights"]["files"], 1);
  EXPECT_GT(json["decisions"].size(), 5u);

  folder_.PatchJson("sentence_bert_config.json", {{"new_key", 1}});
  ExpectRefused({"info", folder_.path()}, {"'new_key'", "sentence_bert_config.json"});
  EXPECT_EQ(Encore({"info", folder_.path(), "--ignore-unknown-keys"}).status, 0);
  ExpectRefused({"info", Path("none")}, {Path("none")});
  ExpectRefused({"info", folder_.path(), "--plan"}, {"--plan"});
}

TEST_F(CliEmbedTest, TokenizeCutsAsTheModelDoes) {
  std::string text = "tea";
  for (int i = 0; i < 40; ++i) text += " tea";
  WriteFile(Path("x"), text + "\n");
  const CliResult result = Encore({"tokenize", "--model", folder_.path(), "--input", Path("x")});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).size(), 24u);
}

// Static embeddings are of texts without the template's tokens.
TEST_F(CliEmbedTest, TokenizeAddsWhatTheModelIsGiven) {
  const std::string model = ENCORE_TEST_DATA_DIR "/heads/static_f16";
  const TextEncoder encoder = Taken(TextEncoder::Open(model));
  WriteFile(Path("x"), "tea with the captain\n");
  const CliResult result = Encore({"tokenize", "--model", model, "--input", Path("x")});
  ASSERT_EQ(result.status, 0) << result.err;
  Tokens with, without;
  TokenizeOptions options;
  ASSERT_TRUE(encoder.tokenizer().Encode("tea with the captain", &with, options).ok());
  options.add_special_tokens = false;
  ASSERT_TRUE(encoder.tokenizer().Encode("tea with the captain", &without, options).ok());
  EXPECT_NE(with.ids, without.ids);
  EXPECT_EQ(nlohmann::json::parse(result.out), nlohmann::json(without.ids));
}

TEST_F(CliEmbedTest, TokenizeTellsDetails) {
  WriteFile(Path("x"), "tea the\n");
  const std::vector<std::string> command = {"tokenize", "--model", folder_.path(), "--input",
                                            Path("x")};
  const CliResult ids = Encore(command);
  std::vector<std::string> with_details = command;
  with_details.push_back("--details");
  const CliResult details = Encore(with_details);
  ASSERT_EQ(details.status, 0) << details.err;
  const nlohmann::json json = nlohmann::json::parse(details.out);
  const size_t count = json["ids"].size();
  EXPECT_EQ(json["ids"], nlohmann::json::parse(ids.out));
  EXPECT_EQ(json["type_ids"], nlohmann::json(std::vector<int>(count, 0)));
  ASSERT_EQ(json["offsets"].size(), count);
  // The template's tokens have none; the last of the text's ends with it.
  EXPECT_EQ(json["offsets"].front(), (nlohmann::json{0, 0}));
  EXPECT_EQ(json["offsets"][count - 2][1], 7);
}

// A folder with PEFT's folders and a tokenizer of as many words.
TEST_F(CliTest, EmbedAddsATasksAdapter) {
  const ModelFolder folder(ENCORE_TEST_DATA_DIR "/models/jina_v3_folders");
  folder.Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\ntea\nharbour\n");
  folder.Write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");
  WriteFile(Path("x"), "tea\nthe harbour\n");
  const auto arguments = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"embed",   "--model",  folder.File(""), "--input",
                                    Path("x"), "--output", Path("v.jsonl")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  std::vector<std::string> outputs;
  for (const std::string task : {"", "retrieval.query", "text-matching"}) {
    const CliResult result = Encore(arguments(
        task.empty() ? std::vector<std::string>() : std::vector{std::string("--task"), task}));
    ASSERT_EQ(result.status, 0) << result.err;
    outputs.push_back(ReadFile(Path("v.jsonl")));
    const TextEncoder model = Taken(TextEncoder::Open(folder.File(""), {.task = task}));
    const Embeddings wanted = Taken(model.Encode({"tea", "the harbour"}));
    const auto first = nlohmann::json::parse(outputs.back().substr(0, outputs.back().find('\n')));
    const ConstView vectors = wanted.vectors.View<float>();
    ASSERT_EQ(first.size(), vectors.dim(1));
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].get<float>(), vectors(0, i));
  }
  EXPECT_NE(outputs[0], outputs[1]);
  EXPECT_NE(outputs[1], outputs[2]);
  ExpectRefused(arguments({"--task", "nli"}), {"nli", "retrieval.query", "text-matching"});
}

}  // namespace
}  // namespace encore
