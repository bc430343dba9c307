// SPDX-License-Identifier: Apache-2.0
//
// Every file of every kind of folder, damaged in several ways: what does not open names the file.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "tests/support/safetensors_bytes.h"

namespace encore {
namespace {

namespace fs = std::filesystem;

Status OpenForTexts(const std::string& folder) { return TextEncoder::Open(folder).status(); }
Status OpenForTokens(const std::string& folder) {
  return MultiVectorEncoder::Open(folder).status();
}
Status OpenForSparse(const std::string& folder) {
  const Result<TextEncoder> model = TextEncoder::Open(folder);
  return model.ok() ? model->EncodeSparse(std::vector<std::string>()).status() : model.status();
}

struct Opening {
  std::string folder;
  Status (*open)(const std::string&);
  std::vector<std::string> needed;  // half of it opens nothing
};

const std::vector<Opening>& Openings() {
  static const std::vector<Opening> all = {
      {"text/base", OpenForTexts, {"config.json", "model.safetensors", "tokenizer.json"}},
      {"text/classifier", OpenForTexts, {"config.json"}},
      {"text/reranker", OpenForTexts, {"tokenizer_config.json"}},
      {"heads/m3", OpenForTexts, {"1_Pooling/config.json", "modules.json"}},
      {"heads/m3", OpenForSparse, {"sparse_linear.pt"}},
      {"heads/m3", OpenForTokens, {"colbert_linear.pt"}},
      {"heads/model2vec", OpenForTexts, {"modules.json", "tokenizer.json"}},
      {"heads/model2vec_alone", OpenForTexts, {"model.safetensors"}},
      {"heads/static_f16", OpenForTexts, {"modules.json"}},
      {"heads/ner_bert", OpenForTexts, {"model.safetensors"}},
      {"heads/ner_modernbert", OpenForTexts, {"config.json"}},
      {"heads/reranker_gemma3", OpenForTexts, {"1_LogitScore/config.json"}},
      {"heads/reranker_qwen3", OpenForTexts, {"sentence_bert_config.json"}},
      {"heads/router", OpenForSparse, {"router_config.json"}},
      {"heads/splade_bert", OpenForSparse, {"1_SpladePooling/config.json"}},
      {"heads/splade_distilbert", OpenForSparse, {"config_sentence_transformers.json"}},
      {"late/own", OpenForTokens, {"1_Dense/model.safetensors", "2_MultiVectorMask/config.json"}},
      {"late/pylate", OpenForTokens, {"1_Dense/config.json"}},
      {"late/stanford", OpenForTokens, {"artifact.metadata", "config.json"}}};
  return all;
}

std::string Bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::map<std::string, std::string> Damaged(const std::string& bytes, std::mt19937* draw) {
  std::string noise = bytes;
  for (char& c : noise) c = static_cast<char>((*draw)());
  std::string bits = bytes;
  for (int i = 0; i < 3 && !bits.empty(); ++i) bits[(*draw)() % bits.size()] ^= 0x10;
  return {{"empty", ""},
          {"half", bytes.substr(0, bytes.size() / 2)},
          {"the start", bytes.substr(0, 10)},
          {"a drawn part", bytes.substr(0, (*draw)() % (bytes.size() + 1))},
          {"zeros", std::string(bytes.size(), '\0')},
          {"noise", noise},
          {"other bits", bits},
          {"a list", "[1, 2]"},
          {"a pointer of git-lfs",
           "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"}};
}

TEST(DamagedFilesTest, EachNamesItself) {
  std::mt19937 draw(1);
  size_t tried = 0;
  size_t refused = 0;
  for (const Opening& opening : Openings()) {
    const TemporaryFolder copy;
    // As deep as folders of a hub's cache.
    const fs::path folder = fs::path(copy.File(std::string(60, 'a'))) / std::string(60, 'b');
    fs::create_directories(folder);
    fs::copy(std::string(ENCORE_TEST_DATA_DIR "/") + opening.folder, folder,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    ASSERT_TRUE(opening.open(folder.string()).ok()) << opening.folder;
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    for (const fs::path& file : files) {
      const std::string bytes = Bytes(file);
      const std::string name = file.lexically_relative(folder).generic_string();
      const bool needed = std::count(opening.needed.begin(), opening.needed.end(), name) > 0;
      for (const auto& [damage, now] : Damaged(bytes, &draw)) {
        std::ofstream(file, std::ios::binary) << now;
        const Status status = opening.open(folder.string());
        ++tried;
        if (needed && damage == "half") {
          EXPECT_FALSE(status.ok()) << opening.folder << "/" << name;
        }
        if (status.ok()) continue;
        ++refused;
        // A letter that changed in the name of a module's class is a word of another file.
        if (damage == "other bits") continue;
        EXPECT_NE(status.message().find(file.filename().string()), std::string::npos)
            << opening.folder << "/" << name << ", " << damage << ": " << status.message();
      }
      std::ofstream(file, std::ios::binary) << bytes;
    }
  }
  std::cout << tried << " damaged files, " << refused << " refused\n";
  EXPECT_GT(refused, tried / 2);
}

}  // namespace
}  // namespace encore
