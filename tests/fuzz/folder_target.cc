// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the files of a model's folder: an error with a sentence, or a model that keeps its
// promises on two texts. The input is the files of kFiles, of which empty ones are not there, and
// the header of model.safetensors. Its data, the tokenizer and an empty header's file are those of
// tests/data/text: of the classifier if config.json names one.

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "encore/text_encoder.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFiles[] = {
    "config.json",
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "2_Dense/config.json",
};

std::string Content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// With the files that stay.
class Folder : public MemoryFolder {
 public:
  Folder() {
    for (const char* const kind : {"base", "classifier"}) {
      weights_[kind] = Content(fs::path(ENCORE_TEST_DATA_DIR "/text") / kind / "model.safetensors");
    }
    Write("tokenizer.json", Content(ENCORE_TEST_DATA_DIR "/text/base/tokenizer.json"));
    Write("2_Dense/model.safetensors", Content(ENCORE_TEST_DATA_DIR "/text/2_Dense.safetensors"));
  }

  // The file of this kind with another header, unless that is empty.
  void WriteWeights(const std::string& kind, std::string_view header) {
    const std::string& file = weights_.at(kind);
    if (header.empty()) return Write("model.safetensors", file);
    size_t length = 0;
    for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(file[i]);
    std::string changed;
    for (size_t i = 0; i < 8; ++i) {
      changed.push_back(static_cast<char>(header.size() >> (8 * i) & 0xFF));
    }
    Write("model.safetensors", changed.append(header).append(file, 8 + length));
  }

 private:
  std::map<std::string, std::string> weights_;  // by kind
};

void UseModel(const TextEncoder& model) {
  for (const Decision& decision : model.Describe()) {
    ENCORE_FUZZ_CHECK(!decision.what.empty() && !decision.source.empty());
  }
  const std::vector<std::string> texts = {"the water of the river", ""};
  const Result<Embeddings> vectors = model.Encode(texts);
  if (vectors.ok()) {
    ENCORE_FUZZ_CHECK(vectors->vectors.shape() == Shape({texts.size(), model.dimensions()}));
    ENCORE_FUZZ_CHECK(vectors->counts.tokens.size() == texts.size());
  } else {
    CheckError(vectors.status());
  }
  const Result<Predictions> labels = model.Classify(texts);
  ENCORE_FUZZ_CHECK(labels.ok() || !labels.status().message().empty());
  if (labels.ok()) {
    ENCORE_FUZZ_CHECK(labels->values.shape() == Shape({texts.size(), model.labels().size()}));
  }
  const Result<Scores> scores = model.Score("a query", texts);
  if (scores.ok()) {
    ENCORE_FUZZ_CHECK(scores->values.size() == texts.size() && model.labels().size() == 1);
  }
}

}  // namespace

void RunFolder(std::string_view input) {
  static Folder folder;
  const std::vector<std::string_view> parts = Parts(input, std::size(kFiles) + 1);
  for (size_t i = 0; i < std::size(kFiles); ++i) folder.Write(kFiles[i], parts[i]);
  const bool classifier = parts[0].find("ForSequenceClassification") != std::string_view::npos;
  folder.WriteWeights(classifier ? "classifier" : "base", parts.back());
  const Result<TextEncoder> model =
      TextEncoder::Open(folder.path(), {.ignore_unknown_keys = input.size() % 2 == 1});
  if (model.ok()) return UseModel(*model);
  CheckError(model.status());
}

}  // namespace encore::fuzz
