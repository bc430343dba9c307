// SPDX-License-Identifier: Apache-2.0
//
// Static embeddings: TextEncoder::Encode of 10,000 texts of 10 tokens, with a WordPiece vocabulary
// of 30,000 and 256 dimensions, in f32, f16 and int8. Texts a second are a tenth of tokens/s.
// Common words are more common, as in texts.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/common.h"
#include "encore/safetensors.h"
#include "encore/text_encoder.h"

namespace encore::bench {
namespace {

constexpr size_t kWords = 30000;
constexpr size_t kDimensions = 256;
constexpr size_t kTexts = 10000;
constexpr size_t kTextTokens = 10;

// A folder that is removed in the end.
class StaticFolder {
 public:
  StaticFolder()
      : path_(std::filesystem::temp_directory_path() /
              ("encore-bench-" + std::to_string(reinterpret_cast<uintptr_t>(this)))) {
    std::filesystem::create_directories(path_);
  }
  StaticFolder(const StaticFolder&) = delete;
  StaticFolder& operator=(const StaticFolder&) = delete;
  ~StaticFolder() { std::filesystem::remove_all(path_); }

  std::string File(const std::string& name) const { return (path_ / name).string(); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(File(name)) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// One for each number, of three to seven letters, more of them for larger numbers.
std::string WordOf(size_t number) {
  const std::string_view vowels = "aeiou";
  const std::string_view consonants = "bcdfghklmnprstvw";
  std::string word;
  for (size_t rest = number + 1; rest != 0; rest /= 80) {
    word += consonants[rest % 16];
    word += vowels[rest / 16 % 5];
  }
  return word + "t";
}

std::string TokenizerJson() {
  std::string vocab = "\"[UNK]\": 0";
  for (size_t i = 0; i + 1 < kWords; ++i) {
    vocab += ", \"" + WordOf(i) + "\": " + std::to_string(i + 1);
  }
  return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
"strip_accents": null, "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
"post_processor": null, "decoder": null, "model": {"type": "WordPiece", "unk_token": "[UNK]",
"continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {)" +
         vocab + "}}}";
}

// The folder stays as long as the model, which reads its files.
struct OpenedTable {
  std::unique_ptr<StaticFolder> kept;
  TextEncoder model;
};

OpenedTable OpenTable(DType type) {
  auto kept = std::make_unique<StaticFolder>();
  const StaticFolder& folder = *kept;
  folder.Write("tokenizer.json", TokenizerJson());
  folder.Write("modules.json",
               R"([{"idx": 0, "name": "0", "path": "",
"type": "sentence_transformers.models.StaticEmbedding"}])");
  // Any bits that are finite numbers in all types.
  std::vector<uint8_t> bytes(kWords * kDimensions * DTypeSize(type));
  uint32_t state = 1;
  for (size_t i = 0; i < bytes.size(); ++i) {
    state = state * 1664525 + 1013904223;
    bytes[i] = static_cast<uint8_t>(i % 4 == 3 || i % 2 == 1 ? 0x3C : state >> 24);
  }
  const std::vector<SafetensorsEntry> entries = {
      {"embedding.weight", type, Shape(kWords, kDimensions), std::as_bytes(std::span(bytes))}};
  const Status written = WriteSafetensors(folder.File("model.safetensors"), entries);
  if (!written.ok()) Fail(written);
  return {std::move(kept), OrFail(TextEncoder::Open(folder.path()))};
}

// Words by a density that falls with the square of their number.
std::vector<std::string> ShortTexts() {
  std::vector<std::string> texts;
  uint32_t state = 2;
  for (size_t i = 0; i < kTexts; ++i) {
    std::string text;
    for (size_t t = 0; t < kTextTokens; ++t) {
      state = state * 1664525 + 1013904223;
      const double share = static_cast<double>(state >> 8) / static_cast<double>(1 << 24);
      const auto word = static_cast<size_t>(share * share * static_cast<double>(kWords - 1));
      text += (t == 0 ? "" : " ") + WordOf(word);
    }
    texts.push_back(text);
  }
  return texts;
}

void StaticTexts(benchmark::State& state, DType type, int threads) {
  const TextEncoder& model =
      Kept<OpenedTable>(std::string(DTypeName(type)), [=] { return OpenTable(type); }).model;
  const std::vector<std::string> texts = ShortTexts();
  Tensor vectors = ZeroTensor(Shape(texts.size(), kDimensions));
  const EncodeOptions options{.executor = OrFail(ExecutorOf(threads))};
  TextCounts counts;
  const Status first = model.Encode(texts, vectors.View<float>(), &counts, options);
  if (!first.ok()) Fail(first);
  Work work;
  for (const size_t tokens : counts.tokens) work.tokens += static_cast<double>(tokens);
  Measure(state, threads, work,
          [&](size_t) { return model.Encode(texts, vectors.View<float>(), nullptr, options); });
}

}  // namespace

void RegisterBenchmarks() {
  for (const int threads : ThreadCounts()) {
    for (const DType type : {DType::kF32, DType::kF16, DType::kI8}) {
      Register("static/" + TypeName(type) + "/threads:" + std::to_string(threads),
               [=](benchmark::State& state) { StaticTexts(state, type, threads); });
    }
  }
}

}  // namespace encore::bench
