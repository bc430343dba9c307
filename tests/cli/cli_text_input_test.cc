// SPDX-License-Identifier: Apache-2.0
//
// Texts of files: plain lines, JSON lines, CSV and TSV (tools/encore/text_input.h), how the format
// is chosen, and what is refused.

#include "tools/encore/text_input.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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
  EXPECT_TRUE(Has(Refusal("x.jsonl", "{\"text\": 1}\n"), "line 1: wanted"));
  EXPECT_TRUE(Has(Refusal("x.jsonl", "{\"text\": \"a\"}\n\n"), "line 2: wanted"));
  EXPECT_TRUE(Has(Refusal("x.jsonl", "{\"text\": \"a\"}\n", "body"), "\"body\""));
  // It would come out as 1.8446744073709552e19.
  EXPECT_TRUE(Has(Refusal("x.jsonl", "{\"text\": \"a\", \"id\": 18446744073709551616}\n"), "id"));
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
