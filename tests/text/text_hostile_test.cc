// SPDX-License-Identifier: Apache-2.0
//
// Folders whose files are broken in every simple way: cut short at each place, empty, of another
// kind, nested without end, a folder where a file is wanted. Each is one error that names the file,
// and none ends the process; meant to run under AddressSanitizer too. And texts of 10 MB.

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

namespace fs = std::filesystem;

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Every file that counts, in a folder that is right with all of them.
constexpr const char* kJsonFiles[] = {
    "config.json",           "tokenizer.json",
    "tokenizer_config.json", "modules.json",
    "1_Pooling/config.json", "sentence_bert_config.json",
    "2_Dense/config.json",   "config_sentence_transformers.json",
};

class TextHostileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModules({"Dense"});
    folder_.AddDense("2_Dense", "2_Dense");
    folder_.Write("2_Dense/config.json",
                  R"({"in_features":32,"out_features":20,"bias":true,)"
                  R"("activation_function":"torch.nn.modules.activation.Tanh"})");
    folder_.Write("sentence_bert_config.json", R"({"max_seq_length":20,"do_lower_case":false})");
    folder_.Write("config_sentence_transformers.json", R"({"prompts":{"query":"query: "}})");
    const TextEncoder model = Taken(TextEncoder::Open(folder_.path()));
  }

  // An error of one line that names the file.
  void ExpectRefused(const std::string& file, const std::string& what) {
    const Result<TextEncoder> model = TextEncoder::Open(folder_.path());
    ASSERT_FALSE(model.ok()) << file << ", " << what;
    const std::string& message = model.status().message();
    EXPECT_NE(message.find(fs::path(file).filename().string()), std::string::npos)
        << file << ", " << what << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 2000u) << file << ", " << what;
  }

  TextFolder folder_;
};

TEST_F(TextHostileTest, FilesThatAreNoJsonOrOfAnotherKind) {
  const std::string deep(100000, '[');
  const std::string keys = R"({"a":1,"a":1})";
  for (const char* const file : kJsonFiles) {
    const std::string before = Content(folder_.File(file));
    for (const std::string& text :
         {std::string(), std::string("{"), std::string("null"), std::string("3"),
          std::string("\"\""), std::string("[3]"), std::string("{}x"), std::string("{\"a\":\xFF}"),
          std::string(1, '\0'), deep, "{\"a\":" + deep, keys, before + "}"}) {
      folder_.Write(file, text);
      ExpectRefused(file, text.substr(0, 20));
    }
    folder_.Write(file, before);
  }
}

// Each file is JSON up to its last bracket, so all shorter ones are broken.
TEST_F(TextHostileTest, FilesThatAreCutShort) {
  for (const char* const file : kJsonFiles) {
    const std::string before = Content(folder_.File(file));
    const size_t whole = before.find_last_of("}]");
    const size_t step = 1 + whole / 50;
    for (size_t size = 0; size <= whole; size += step) {
      folder_.Write(file, before.substr(0, size));
      ExpectRefused(file, "its first " + std::to_string(size) + " bytes");
    }
    folder_.Write(file, before);
  }
}

TEST_F(TextHostileTest, WeightsThatAreCutShort) {
  for (const char* const file : {"model.safetensors", "2_Dense/model.safetensors"}) {
    const std::string before = Content(folder_.File(file));
    for (size_t size = 0; size < before.size(); size += 1 + before.size() / 60) {
      folder_.Write(file, before.substr(0, size));
      ExpectRefused(file, "its first " + std::to_string(size) + " bytes");
    }
    folder_.Write(file, before);
  }
}

TEST_F(TextHostileTest, AFolderWhereAFileIsWanted) {
  std::vector<std::string> files(std::begin(kJsonFiles), std::end(kJsonFiles));
  files.insert(files.end(), {"model.safetensors", "2_Dense/model.safetensors"});
  for (const std::string& file : files) {
    const std::string before = Content(folder_.File(file));
    fs::remove(folder_.File(file));
    fs::create_directory(folder_.File(file));
    ExpectRefused(file, "a folder");
    fs::remove(folder_.File(file));
    folder_.Write(file, before);
  }
}

// Each byte of the settings, one after the other, is another: opened or refused, and no more is
// asked of it.
TEST_F(TextHostileTest, OneByteThatIsAnother) {
  size_t opened = 0;
  size_t refused = 0;
  for (const char* const file : kJsonFiles) {
    const std::string before = Content(folder_.File(file));
    for (size_t i = 0; i < before.size(); i += 1 + before.size() / 40) {
      std::string changed = before;
      changed[i] = static_cast<char>(changed[i] ^ 0x11);
      folder_.Write(file, changed);
      const Result<TextEncoder> model = TextEncoder::Open(folder_.path());
      (model.ok() ? opened : refused) += 1;
      if (!model.ok()) {
        EXPECT_FALSE(model.status().message().empty());
      }
    }
    folder_.Write(file, before);
  }
  EXPECT_GT(opened, 0u);
  EXPECT_GT(refused, 100u);
}

TEST_F(TextHostileTest, TextsOfTenMegabytes) {
  const TextEncoder model = Taken(TextEncoder::Open(folder_.path()));
  constexpr size_t kBytes = size_t{10} << 20;
  const std::string word(kBytes, 'a');  // one unknown token
  std::string accents;
  while (accents.size() < kBytes) accents += "\xCC\x81";  // marks, of which nothing is left
  std::string words;
  while (words.size() < kBytes) words += "a ";
  const std::vector<std::string> texts = {word, accents, words};
  const Embeddings vectors = Taken(model.Encode(texts));
  EXPECT_EQ(vectors.counts.tokens, (std::vector<size_t>{3, 2, 20}));
  EXPECT_EQ(vectors.counts.cut, (std::vector<size_t>{0, 0, kBytes / 2 - 18}));
}

}  // namespace
}  // namespace encore
