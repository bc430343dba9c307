// SPDX-License-Identifier: Apache-2.0
//
// The files of the tiny model.

#include "tests/tiny_text_model.h"

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include "encore/safetensors.h"
#include "encore/tensor.h"

namespace encore {
namespace {

constexpr size_t kD = TinyTextModel::kDimensions;
constexpr size_t kFeedForward = 48;
constexpr size_t kPositions = 64;

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  EXPECT_TRUE(file.good()) << path;
}

// Tensors with numbers from middle - 0.5 to middle + 0.5.
class DrawnTensors {
 public:
  void Add(const std::string& name, const Shape& shape, float middle = 0) {
    Result<Tensor> tensor = Tensor::Create(DType::kF32, shape);
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    float* data = static_cast<float*>(tensor->data());
    for (size_t i = 0; i < tensor->size_bytes() / sizeof(float); ++i) {
      data[i] = middle + static_cast<float>(generator_() % 10000) / 10000.0f - 0.5f;
    }
    tensors_.push_back(*std::move(tensor));
    entries_.push_back(MakeSafetensorsEntry(name, tensors_.back()));
  }
  void AddLinear(const std::string& name, size_t outputs, size_t inputs) {
    Add(name + ".weight", {outputs, inputs});
    Add(name + ".bias", {outputs});
  }
  void AddNorm(const std::string& name) {
    Add(name + ".weight", {kD}, 1);
    Add(name + ".bias", {kD});
  }
  void Write(const std::string& path) const {
    const Status status = WriteSafetensors(path, entries_);
    EXPECT_TRUE(status.ok()) << status.message();
  }

 private:
  std::mt19937 generator_{20261122};
  std::deque<Tensor> tensors_;
  std::vector<SafetensorsEntry> entries_;
};

void WriteWeights(const std::string& path, size_t vocabulary, bool head) {
  DrawnTensors tensors;
  const std::string prefix = head ? "bert." : "";
  tensors.Add(prefix + "embeddings.word_embeddings.weight", {vocabulary, kD});
  tensors.Add(prefix + "embeddings.position_embeddings.weight", {kPositions, kD});
  tensors.Add(prefix + "embeddings.token_type_embeddings.weight", {size_t{2}, kD});
  tensors.AddNorm(prefix + "embeddings.LayerNorm");
  for (size_t i = 0; i < TinyTextModel::kLayers; ++i) {
    const std::string layer = prefix + "encoder.layer." + std::to_string(i) + ".";
    for (const char* name : {"query", "key", "value"}) {
      tensors.AddLinear(layer + "attention.self." + name, kD, kD);
    }
    tensors.AddLinear(layer + "attention.output.dense", kD, kD);
    tensors.AddNorm(layer + "attention.output.LayerNorm");
    tensors.AddLinear(layer + "intermediate.dense", kFeedForward, kD);
    tensors.AddLinear(layer + "output.dense", kD, kFeedForward);
    tensors.AddNorm(layer + "output.LayerNorm");
  }
  tensors.AddLinear(prefix + "pooler.dense", kD, kD);
  if (head) tensors.AddLinear("classifier", 1, kD);
  tensors.Write(path);
}

std::string Config(size_t vocabulary, bool head) {
  std::string config = R"({"model_type": "bert", "hidden_act": "gelu", "layer_norm_eps": 1e-12,
 "pad_token_id": 0, "type_vocab_size": 2, "position_embedding_type": "absolute",
 "architectures": [")";
  config += head ? "BertForSequenceClassification" : "BertModel";
  config += "\"]";
  const auto add = [&](const char* key, size_t value) {
    config += std::string(", \"") + key + "\": " + std::to_string(value);
  };
  add("hidden_size", kD);
  add("num_hidden_layers", TinyTextModel::kLayers);
  add("num_attention_heads", TinyTextModel::kHeads);
  add("intermediate_size", kFeedForward);
  add("max_position_embeddings", kPositions);
  add("vocab_size", vocabulary);
  if (head) config += R"(, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0})";
  return config + "}\n";
}

}  // namespace

std::vector<std::string> TinyTextModel::Vocabulary() {
  return {"[PAD]", "[UNK]",  "[CLS]", "[SEP]", "[MASK]", "the", "a",   "cat",  "dog",
          "sat",   "on",     "mat",   "how",   "do",     "i",   "##s", "##ly", "renew",
          "pass",  "##port", "visa",  ".",     ",",      "?",   "!"};
}

int TinyTextModel::Id(const std::string& token) {
  const std::vector<std::string> vocabulary = Vocabulary();
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    if (vocabulary[i] == token) return static_cast<int>(i);
  }
  ADD_FAILURE() << "the tiny vocabulary has no " << token;
  return -1;
}

void TinyTextModel::Write(const std::string& folder, Kind kind) {
  const bool head = kind == Kind::kReranker;
  const std::vector<std::string> vocabulary = Vocabulary();
  std::string lines;
  for (const std::string& token : vocabulary) lines += token + "\n";
  WriteText(folder + "/vocab.txt", lines);
  WriteText(
      folder + "/tokenizer_config.json",
      R"({"tokenizer_class": "BertTokenizer", "do_lower_case": true, "model_max_length": 64})");
  WriteText(folder + "/config.json", Config(vocabulary.size(), head));
  WriteWeights(folder + "/model.safetensors", vocabulary.size(), head);
  if (head) return;
  WriteText(folder + "/modules.json",
            R"([
 {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
 {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
 {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
])");
  WriteText(folder + "/sentence_bert_config.json",
            "{\"max_seq_length\": " + std::to_string(kMaxLength) + ", \"do_lower_case\": false}");
  std::filesystem::create_directory(folder + "/1_Pooling");
  WriteText(folder + "/1_Pooling/config.json",
            "{\"word_embedding_dimension\": " + std::to_string(kD) +
                ", \"pooling_mode_mean_tokens\": true}");
}

}  // namespace encore
