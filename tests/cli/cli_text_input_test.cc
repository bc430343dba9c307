// SPDX-License-Identifier: Apache-2.0
//
// Texts of files: plain lines, JSON lines, CSV and TSV (tools/encore/text_input.h), how the format
// is chosen, and what is refused.

#include "tools/encore/text_input.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/text_case.h"
#include "tools/encore/failure.h"

namespace encore {
namespace {

using tool::TextFormat;
using Texts = std::vector<std::string>;

class TextInputTest : public CliTest {
 protected:
  // The texts of a file with these bytes.
  Texts Read(const std::string& name, const std::string& bytes, const std::string& field = "") {
    WriteFile(Path(name), bytes);
    tool::TextReader reader({.path = Path(name), .field = field});
    Texts texts;
    ids_.clear();
    lines_.clear();
    for (tool::TextInput input; reader.Next(&input);) {
      texts.push_back(input.text);
      ids_.push_back(input.id);
      lines_.push_back(reader.line());
    }
    EXPECT_EQ(reader.bytes(), bytes.size());
    return texts;
  }

  // The sentence with which the file is refused.
  std::string Refusal(const std::string& name, const std::string& bytes,
                      const std::string& field = "") {
    try {
      Read(name, bytes, field);
    } catch (const tool::Failure& failure) {
      return failure.what();
    }
    return "not refused";
  }

  Texts ids_;
  std::vector<size_t> lines_;
};

TEST_F(TextInputTest, TheEndingSaysTheFormat) {
  const std::string json = "{\"text\": \"tea\"}\n";
  EXPECT_EQ(Read("x.jsonl", json), Texts{"tea"});
  EXPECT_EQ(Read("x.NDJSON", json), Texts{"tea"});
  EXPECT_EQ(Read("x.csv", "text\ntea\n"), Texts{"tea"});
  EXPECT_EQ(Read("x.tsv", "text\ttext2\ntea\tcake\n"), Texts{"tea"});
  EXPECT_EQ(Read("x.txt", "text\n"), Texts{"text"});
  EXPECT_EQ(Read("x", "{tea}\n[tea]\n"), (Texts{"{tea}", "[tea]"}));
  EXPECT_EQ(Read("x", "tea\n" + json), (Texts{"tea", "{\"text\": \"tea\"}"}));
}

TEST_F(TextInputTest, JsonReadAsTextIsRefused) {
  for (const char* line : {"{\"text\": \"tea\"}\n", "[\"tea\", \"bread\"]\r\n", "{}"}) {
    const std::string refusal = Refusal("x.txt", line);
    EXPECT_TRUE(Has(refusal, "line 1: found JSON")) << refusal;
    EXPECT_TRUE(Has(refusal, "--format jsonl")) << refusal;
  }
  EXPECT_TRUE(Has(Refusal("x.json", "[]"), "--format")) << Refusal("x.json", "[]");
}

TEST_F(TextInputTest, WhatIsNoTextIsNamed) {
  EXPECT_TRUE(Has(Refusal("x.jsonl.gz", "\x1F\x8B\x08rest"), "gzip"));
  EXPECT_TRUE(Has(Refusal("x", "\x28\xB5\x2F\xFDrest"), "zstd"));
  EXPECT_TRUE(Has(Refusal("x.csv", "PAR1rest"), "Parquet"));
  EXPECT_TRUE(Has(Refusal("x.txt", std::string("\xFF\xFEt\0e\0a\0", 8)), "UTF-16"));
}

TEST_F(TextInputTest, AByteOrderMarkIsNoText) {
  EXPECT_EQ(Read("x.txt", "\xEF\xBB\xBFtea\n\xEF\xBB\xBFtea"), (Texts{"tea", "\xEF\xBB\xBFtea"}));
  EXPECT_EQ(Read("x.csv", "\xEF\xBB\xBFtext\ntea\n"), Texts{"tea"});
  EXPECT_EQ(Read("x.jsonl", "\xEF\xBB\xBF\"tea\""), Texts{"tea"});
  EXPECT_EQ(Read("x.txt", "\xEF\xBB\xBF"), Texts{});
}

TEST_F(TextInputTest, CsvIsThatOfRfc4180) {
  const std::string csv =
      "id,text,more\r\n"
      "1,\"a \"\"b\"\", c\r\nd\n\",\"\"\r\n"
      "\r\n"
      "x,e \"f\" g,h\n"
      "\"y\",,\n"
      "4,last,";
  EXPECT_EQ(Read("x.csv", csv), (Texts{"a \"b\", c\r\nd\n", "e \"f\" g", "", "last"}));
  EXPECT_EQ(ids_, (Texts{"\"1\"", "\"x\"", "\"y\"", "\"4\""}));
  EXPECT_EQ(lines_, (std::vector<size_t>{2, 6, 7, 8}));
  EXPECT_EQ(Read("x.csv", csv, "id"), (Texts{"1", "x", "y", "4"}));
  EXPECT_EQ(Read("x.tsv", "a\ttext\n1,2\t\"b\tc\"\n"), Texts{"b\tc"});
  EXPECT_EQ(Read("x.csv", "text\n"), Texts{});
}

TEST_F(TextInputTest, CsvRefusesWhatWouldLoseText) {
  EXPECT_TRUE(Has(Refusal("x.csv", "id,body\n1,tea\n"), "'id', 'body'"));
  EXPECT_TRUE(Has(Refusal("x.csv", "id,text\n1,tea\n2,tea,bread\n"), "line 3: found 3 columns"));
  EXPECT_TRUE(Has(Refusal("x.csv", "id,text\n1\n"), "line 2: found 1 column"));
  EXPECT_TRUE(Has(Refusal("x.csv", "text\ntea\n\"bread\n\n"), "line 3: a quote"));
  EXPECT_TRUE(Has(Refusal("x.csv", "text\n\"tea\n\" bread\n"), "line 3: found text behind"));
  EXPECT_TRUE(Has(Refusal("x.csv", ""), "no header"));
  EXPECT_TRUE(Has(Refusal("x.txt", "tea\n", "text"), "--field"));
}

TEST_F(TextInputTest, JsonLinesHaveFieldsAndIds) {
  EXPECT_EQ(Read("x.jsonl",
                 "{\"body\": \"tea\", \"id\": 18446744073709551615}\n"
                 "\"bread\"\n"
                 "{\"body\": \"cake\", \"id\": \"a\\\"7\"}\n",
                 "body"),
            (Texts{"tea", "bread", "cake"}));
  EXPECT_EQ(ids_, (Texts{"18446744073709551615", "", "\"a\\\"7\""}));
  EXPECT_TRUE(Has(Refusal("x.jsonl", "{\"text\": \"a\"}\n", "body"), "\"body\""));
  // It would come out as 1.8446744073709552e19.
  EXPECT_TRUE(Has(Refusal("x.jsonl", "{\"text\": \"a\", \"id\": 18446744073709551616}\n"), "id"));
}

// Of each kind of line a sentence of its own, with what was found.
TEST_F(TextInputTest, EachBrokenJsonLineSaysWhatItIs) {
  const std::pair<std::string, std::string> kLines[] = {
      {"", "found an empty line"},
      {"  ", "found an empty line"},
      {R"({"txt": "a", "n": 1})", R"(found an object with "txt", "n", wanted a member "text")"},
      {"{}", "found an object without members"},
      {R"({"x": {"text": "a"}})", "found an object with \"x\""},
      {R"({"text": null})", "\"text\" is null, wanted a string"},
      {R"({"text": 12})", "\"text\" is the number 12"},
      {R"({"text": -1.5e3})", "\"text\" is the number -1.5e3"},
      {R"({"text": false})", "\"text\" is false"},
      {R"({"text": ["a"]})", "\"text\" is an array"},
      {R"({"text": {"text": "a"}})", "\"text\" is an object"},
      {R"({"text": "a", "pair": 3})", "\"pair\" is the number 3"},
      {R"({"text": "a", "pair": null})", "\"pair\" is null"},
      {R"({"text": "a", "id": 1.5})", "\"id\" is 1.5, wanted a string or an integer"},
      {R"({"text": "a", "id": null})", "\"id\" is null"},
      {R"({"text": "a", "id": [1]})", "\"id\" is an array"},
      {R"({"text": "a", "text": "b"})", "found \"text\" twice"},
      {R"({"text": "a", "id": 1, "id": "b"})", "found \"id\" twice"},
      {"12", "found the number 12, wanted a string, or an object with \"text\""},
      {"null", "found null"},
      {"true", "found true"},
      {R"(["a"])", "found an array"},
      {"tea", "found 'ea' at byte 2, which is no JSON"},
      {"{'text': 'a'}", "at byte 2, which is no JSON"},
      {R"({"text": "a",})", "found '}' at byte 14, which is no JSON"},
      {R"({"text": NaN})", "which is no JSON"},
      {"\"a\tb\"", "which is no JSON"},
      {R"({"text": "a")", "found the start of a JSON value"},
      {R"("a)", "found the start of a JSON value"},
      {R"("a" "b")", "found '\"b\"' at byte 5, behind a JSON value"},
      {R"({"text": "a"}{"text": "b"})", "found '{\"text\": \"b\"}' at byte 14, behind"},
      {"5}", "found '}' at byte 2, behind a JSON value"},
      {"12abc", "found 'abc' at byte 3, behind a JSON value"},
      {"-5 6", "found '6' at byte 4, behind a JSON value"},
      {R"({"text": "a", "n": 1e999})", "a number that is too large"},
      {std::string("\"a\"\0", 4), "found a zero byte at byte 4"},
      {"\"a\xFF\"", "found the byte 0xFF at byte 3, which is not UTF-8"},
      {"\"a\xED\xA0\xBD\"", "found the byte 0xED at byte 3, which is not UTF-8"},
      {R"({"text": "half \ud83d"})", R"(found \ud83d, half of a surrogate pair)"},
      {R"({"text": "half \uDE00"})", R"(found \uDE00, half of a surrogate pair)"},
      {R"("\ud83d\ud83d\ude00")", R"(found \ud83d, half of a surrogate pair)"},
      {R"("\ud83dx")", "half of a surrogate pair"},
      {R"({"text": "a", "x": "\udfff"})", "half of a surrogate pair"}};
  for (const auto& [line, words] : kLines) {
    const std::string refusal = Refusal("x.jsonl", "\"tea\"\n" + line + "\n\"tea\"\n");
    EXPECT_TRUE(Has(refusal, "x.jsonl: line 2: " + (words.starts_with("found") ? words : "")))
        << line << "\n"
        << refusal;
    EXPECT_TRUE(Has(refusal, words)) << line << "\nwanted: " << words << "\nfound: " << refusal;
  }
}

TEST_F(TextInputTest, WhatIsInvalidIsReplacedOnRequest) {
  const std::pair<std::string, std::string> kLines[] = {
      {R"("a \ud83d")", "a \uFFFD"},
      {R"("\ude00\ud83d b")", "\uFFFD\uFFFD b"},
      {R"("\ud83d\ud83d\ude00")", "\uFFFD\U0001F600"},
      {R"("\\ud83d \ud83d\n")", "\\ud83d \uFFFD\n"},
      {R"({"text": "a", "x": "\udfff"})", "a"},
      {"\"a\xFF\xE2\x82z\"", "a\uFFFD\uFFFDz"},
      {"\"\xFF \\ud83d\"", "\uFFFD \uFFFD"}};
  for (const auto& [line, text] : kLines) {
    WriteFile(Path("x.jsonl"), line + "\n");
    tool::TextReader reader({.path = Path("x.jsonl"), .replace_invalid = true});
    tool::TextInput input;
    ASSERT_TRUE(reader.Next(&input));
    EXPECT_EQ(input.text, text) << line;
  }
  WriteFile(Path("x.jsonl"), "{\"text\": \"\\ud83d\n");
  tool::TextReader reader({.path = Path("x.jsonl"), .replace_invalid = true});
  tool::TextInput input;
  EXPECT_THROW(reader.Next(&input), tool::Failure);
  EXPECT_TRUE(Has(Refusal("x.csv", "id,text\na\xFF,tea\n"), "line 2: found the byte 0xFF"));
}

// The JSON of drawn texts, halves of surrogate pairs among them, is read as what it says; broken at
// a drawn place, it is what it was or refused.
TEST_F(TextInputTest, DrawnLines) {
  std::mt19937 draw(1);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (size_t length = draw() % 8; length > 0; --length) {
      constexpr const char* kParts[] = {"a", "\\", "\"", "u", "d83d", "\n", "\u00e9", "\U0001F600"};
      text += kParts[draw() % 8];
    }
    const nlohmann::json object = {{"id", i}, {"text", text}, {"x", {1, nullptr, text}}};
    std::string line = object.dump(-1, ' ', draw() % 2 == 0);
    tool::TextInput input;
    ASSERT_EQ(tool::ReadJsonLine(line, {.field = "text"}, &input), "") << line;
    ASSERT_EQ(input.text, text);
    ASSERT_EQ(input.id, std::to_string(i));
    line[draw() % line.size()] = static_cast<char>(draw() % 128);
    const nlohmann::json now = nlohmann::json::parse(line, nullptr, false);
    const std::string wrong = tool::ReadJsonLine(line, {.field = "text"}, &input);
    if (now.is_discarded()) {
      EXPECT_NE(wrong, "") << line;
    } else if (wrong.empty()) {
      EXPECT_EQ(now["text"], input.text);
    }
  }
}

// Of every option that takes neither a file nor a number, and of arguments.
TEST_F(TextInputTest, ArgumentsThatAreNoTextAreNamed) {
  const TextFolder folder;
  const TextFolder reranker("reranker");
  WriteFile(Path("x.jsonl"), "\"tea\"\n");
  const Texts embed = {"embed",         "--model",  folder.path(),  "--input",
                       Path("x.jsonl"), "--output", Path("v.jsonl")};
  for (const char* option : {"--prompt", "--prompt-name", "--task", "--field", "--output-field",
                             "--shard", "--target", "--keep"}) {
    Texts arguments = embed;
    arguments.insert(arguments.end(), {option, "a\xFF"});
    ExpectRefused(arguments, {std::string(option) + ": found the byte 0xFF at byte 2", "UTF-8"});
  }
  const Texts rerank = {"rerank",        "--model", reranker.path(), "--input",
                        Path("x.jsonl"), "--query", "who \xE2\x82?"};
  ExpectRefused(rerank, {"--query: found the byte 0xE2 at byte 5, which is not UTF-8"});
  ExpectRefused({"attend", "a\xFF"}, {"the byte 0xFF at byte 2, which is not UTF-8"});
  Texts replaced = rerank;
  replaced.emplace_back("--replace-invalid");
  EXPECT_EQ(Encore(replaced).status, 0);
  // Names of files are bytes.
  std::filesystem::copy(Path("x.jsonl"), Path("\xFF.jsonl"));
  EXPECT_EQ(Encore({"tokenize", "--model", folder.path(), "--input", Path("\xFF.jsonl")}).status,
            0);
}

// ---- As the commands have it ------------------------------------------------------------------

TEST_F(TextInputTest, CommandsGoByTheFormat) {
  const TextFolder folder;
  WriteFile(Path("plain"), "tea\nbread\n");
  WriteFile(Path("x.csv"), "q,text\nbread,tea\ntea,bread\n");
  WriteFile(Path("x.jsonl"), "\"tea\"\n{\"text\": \"bread\"}\n");
  const auto tokens = [&](const std::string& name, const Texts& more = {}) {
    Texts arguments = {"tokenize", "--model", folder.path(), "--input", Path(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CliResult result = Encore(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  const std::string want = tokens("plain");
  EXPECT_EQ(tokens("x.csv"), want);
  EXPECT_NE(tokens("x.csv", {"--field", "q"}), want);
  EXPECT_EQ(tokens("x.jsonl"), want);
  EXPECT_EQ(tokens("plain", {"--format", "text"}), want);
  EXPECT_NE(tokens("x.jsonl", {"--format", "text"}), want);
  WriteFile(Path("json.txt"), ReadFile(Path("x.jsonl")));
  EXPECT_EQ(tokens("json.txt", {"--format", "jsonl"}), want);
  EXPECT_EQ(tokens("json.txt", {"--jsonl"}), want);

  WriteFile(Path("json.txt"), "{\"text\": \"tea\"}\n");
  for (const char* command : {"tokenize", "embed", "rerank"}) {
    Texts arguments = {command, "--model", folder.path(), "--input", Path("json.txt")};
    if (std::string(command) == "embed")
      arguments.insert(arguments.end(), {"--output", Path("v.npy")});
    if (std::string(command) == "rerank") {
      const TextFolder reranker("reranker");
      arguments = {command,   "--model", reranker.path(), "--input", Path("json.txt"),
                   "--query", "a"};
      ExpectRefused(arguments, {"json.txt: line 1: found JSON", "--format jsonl"});
      continue;
    }
    ExpectRefused(arguments, {"json.txt: line 1: found JSON", "--format jsonl"});
  }
  ExpectRefused({"tokenize", "--model", folder.path(), "--input", Path("plain"), "--format", "xml"},
                {"--format", "xml", "jsonl"});
  ExpectRefused({"tokenize", "--model", folder.path(), "--input", Path("plain"), "--format", "csv",
                 "--jsonl"},
                {"--format", "--jsonl"});
}

TEST_F(TextInputTest, WhatWasPrintedBeforeAnErrorHasAStatusOfItsOwn) {
  const TextFolder folder;
  WriteFile(Path("x"), "tea\n\xFF\n");
  const CliResult part =
      Encore({"tokenize", "--model", folder.path(), "--input", Path("x"), "--max-length", "0"});
  EXPECT_EQ(part.status, 3);
  EXPECT_EQ(std::count(part.out.begin(), part.out.end(), '\n'), 1) << part.out;
  EXPECT_TRUE(Has(part.err, "line 2")) << part.err;
  WriteFile(Path("x"), "\xFF\n");
  ExpectRefused({"tokenize", "--model", folder.path(), "--input", Path("x")}, {"line 1"});
}

}  // namespace
}  // namespace encore
