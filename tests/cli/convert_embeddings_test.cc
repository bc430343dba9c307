// SPDX-License-Identifier: Apache-2.0
//
// `encore convert --embeddings`: tables in f16 and bf16 compute what tables rounded once compute,
// those in int8 what their integers times their scales compute, to the bit; what is told of sizes
// and loss, and what is refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "engine/base/bf16.h"
#include "tests/cli/cli_runner.h"
#include "tests/support/compare.h"
#include "tests/support/model_folder.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

const std::vector<std::string> kEmbeddedTexts = {
    "the bread", "", "these letters and the harbour lie between two hills"};
// Of TextFolder's model.
const std::vector<std::string> kTables = {"word_embeddings.weight", "position_embeddings.weight",
                                          "token_type_embeddings.weight"};

std::vector<float> EmbeddedVectors(const std::string& folder, const OpenOptions& options = {}) {
  const TextEncoder model = Taken(TextEncoder::Open(folder, options));
  const auto encoded = Taken(model.Encode(kEmbeddedTexts));
  const auto* data = static_cast<const float*>(encoded.vectors.data());
  return {data, data + encoded.vectors.size_bytes() / sizeof(float)};
}

bool IsTable(const std::string& name) {
  return std::any_of(kTables.begin(), kTables.end(),
                     [&](const std::string& table) { return name.ends_with(table); });
}

class ConvertEmbeddingsTest : public CliTest {
 protected:
  ConvertEmbeddingsTest() { folder_.WriteModules(); }

  std::string Convert(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"convert", folder_.path(), out_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::filesystem::remove_all(out_);
    const CliResult result = Encore(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }

  // The floats of tables changed: a copy of the folder whose tables are F32.
  void ChangeTables(
      const ModelFolder& copy,
      const std::function<void(const SafetensorsEntry&, std::vector<float>&)>& change) {
    copy.ChangeWeights([&](SafetensorsEntry& entry) {
      if (!IsTable(entry.name)) return true;
      const auto* data = reinterpret_cast<const float*>(entry.bytes.data());
      std::vector<float>& floats = kept_.emplace_back(data, data + entry.bytes.size() / 4);
      change(entry, floats);
      entry.bytes = std::as_bytes(std::span(floats));
      return true;
    });
  }

  std::string WhyNotOpened(const std::string& folder) const {
    const Result<TextEncoder> model = TextEncoder::Open(folder);
    return model.ok() ? "" : model.status().message();
  }

  const TextFolder folder_;
  const std::string out_ = Path("out");
  std::list<std::vector<float>> kept_;
};

TEST_F(ConvertEmbeddingsTest, MatricesAreCountedAsTheyAreWritten) {
  const std::string all = Convert({"--precision", "int8"});
  EXPECT_TRUE(Has(all, ": 12 matrices in int8\n")) << all;
  const std::string one = Convert({"--precision", "int8", "--keep", "0.linear2"});
  EXPECT_TRUE(Has(one, ": 11 matrices in int8, 1 kept in bf16\n")) << one;
  // Queries, keys and values are three tensors here.
  const std::string three = Convert({"--precision", "int8", "--keep", "0.qkv"});
  EXPECT_TRUE(Has(three, ": 9 matrices in int8, 3 kept in bf16\n")) << three;
  EXPECT_TRUE(Has(three, "I8 9, BF16 3")) << three;
  EXPECT_TRUE(Has(Convert({"--precision", "bf16"}), ": 12 matrices in bf16\n"));
}

TEST_F(ConvertEmbeddingsTest, SizesAreThoseOfTheFile) {
  const std::string out = Convert({"--precision", "int8", "--embeddings", "int8"});
  const SafetensorsFile file = Taken(SafetensorsFile::Open(out_ + "/model.safetensors"));
  size_t tables = 0, all = 0;
  for (const SafetensorsEntry& entry : file.tensors()) {
    all += entry.bytes.size();
    if (!IsTable(entry.name)) continue;
    EXPECT_EQ(entry.dtype, DType::kI8) << entry.name;
    tables += entry.bytes.size();
  }
  const auto megabytes = [](size_t bytes) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.2f MB", static_cast<double>(bytes) / 1e6);
    return std::string(text);
  };
  const auto line = [&](const std::string& name) {
    const size_t at = out.find("  " + name);
    return at == std::string::npos ? out : out.substr(at, out.find('\n', at) - at);
  };
  EXPECT_TRUE(Has(line("embeddings"), megabytes(4 * tables))) << out;
  EXPECT_TRUE(Has(line("embeddings"), megabytes(tables) + "  I8")) << out;
  EXPECT_TRUE(Has(line("all weights"), megabytes(all))) << out;
}

TEST_F(ConvertEmbeddingsTest, HalfTablesAreTablesRoundedOnce) {
  const std::vector<float> exact = EmbeddedVectors(folder_.path());
  for (const std::string type : {"bf16", "f16", "f32"}) {
    SCOPED_TRACE(type);
    Convert({"--precision", "f32", "--embeddings", type});
    const ModelFolder rounded(folder_.path());
    ChangeTables(rounded, [&](const SafetensorsEntry&, std::vector<float>& floats) {
      for (float& f : floats) {
        if (type == "bf16") f = internal::Bf16ToF32(internal::F32ToBf16(f));
        if (type == "f16") f = internal::F16ToF32(internal::F32ToF16(f));
      }
    });
    const std::vector<float> vectors = EmbeddedVectors(out_);
    EXPECT_TRUE(SameBits(vectors, EmbeddedVectors(rounded.File(""))));
    EXPECT_EQ(static_cast<bool>(SameBits(vectors, exact)), type == "f32");
    Convert({"--precision", "int8", "--embeddings", type});
    EXPECT_TRUE(SameBits(EmbeddedVectors(out_),
                         EmbeddedVectors(rounded.File(""), {.precision = Precision::kInt8})));
  }
}

TEST_F(ConvertEmbeddingsTest, Int8TablesAreIntegersTimesTheirRowsScale) {
  Convert({"--precision", "f32", "--embeddings", "int8"});
  const SafetensorsFile file = Taken(SafetensorsFile::Open(out_ + "/model.safetensors"));
  EXPECT_FALSE(file.metadata().contains("encore_precision"));
  const ModelFolder floats_of(folder_.path());
  size_t tables = 0;
  ChangeTables(floats_of, [&](const SafetensorsEntry& entry, std::vector<float>& floats) {
    const SafetensorsEntry* const integers = file.Find(entry.name);
    const SafetensorsEntry* const scales = file.Find(entry.name + "_scale");
    ASSERT_TRUE(integers != nullptr && scales != nullptr) << entry.name;
    ASSERT_EQ(integers->dtype, DType::kI8);
    ASSERT_EQ(scales->dtype, DType::kF32);
    ASSERT_EQ(scales->shape, Shape(entry.shape[0]));
    const auto* q = reinterpret_cast<const int8_t*>(integers->bytes.data());
    const auto* s = reinterpret_cast<const float*>(scales->bytes.data());
    const size_t width = entry.shape[1];
    for (size_t i = 0; i < floats.size(); ++i) {
      const float value = s[i / width] * static_cast<float>(q[i]);
      EXPECT_LE(std::abs(value - floats[i]), 0.5001f * s[i / width]) << entry.name << " " << i;
      floats[i] = value;
    }
    ++tables;
  });
  EXPECT_EQ(tables, kTables.size());
  EXPECT_TRUE(SameBits(EmbeddedVectors(out_), EmbeddedVectors(floats_of.File(""))));
  EXPECT_FALSE(SameBits(EmbeddedVectors(out_), EmbeddedVectors(folder_.path())));
  Convert({"--precision", "bf16", "--embeddings", "int8"});
  EXPECT_TRUE(SameBits(EmbeddedVectors(out_),
                       EmbeddedVectors(floats_of.File(""), {.precision = Precision::kBF16})));
}

TEST_F(ConvertEmbeddingsTest, EveryFamilyOpens) {
  for (const std::string family :
       {"bert", "bert_shards", "bert_old", "distilbert", "electra_1", "roberta_3", "mpnet_1",
        "modernbert_3", "nomic_bert_old", "gte_new_1", "jina_bert", "qwen3", "gemma3", "t5",
        "t5_v1_1", "eurobert", "albert", "ernie"}) {
    SCOPED_TRACE(family);
    const ModelFolder folder(std::string(ENCORE_TEST_DATA_DIR "/models/") + family);
    std::filesystem::remove_all(out_);
    const CliResult result =
        Encore({"convert", folder.File(""), out_, "--precision", "f32", "--embeddings", "int8"});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(Has(result.out, "No cosine with IN in f32") || Has(result.out, "Cosine of"));
    std::vector<Decision> decisions;
    const internal::TextModel model =
        Taken(internal::TextModel::Open(*internal::Folder::Open(out_), {}, &decisions));
    EXPECT_TRUE(std::any_of(decisions.begin(), decisions.end(), [](const Decision& d) {
      return d.what == "embeddings" && d.value == "int8, a scale a row";
    }));
    for (const Decision& d : decisions) EXPECT_FALSE(Has(d.value, "weight_scale")) << d.value;
  }
}

// Cosines in what was printed.
std::vector<double> Cosines(const std::string& out) {
  std::vector<double> found;
  for (size_t at = out.find(": ", out.find("Cosine of")); at != std::string::npos;) {
    found.push_back(std::stod(out.substr(at + 2)));
    const size_t comma = out.find(", ", at);
    found.push_back(std::stod(out.substr(comma + 2)));
    at = out.find("IN: ", comma);
    if (at != std::string::npos) at += 2;
  }
  return found;
}

TEST_F(ConvertEmbeddingsTest, TheLossIsTold) {
  const std::string same = Convert({"--precision", "f32", "--embeddings", "f32"});
  EXPECT_TRUE(Has(same, "24 texts")) << same;
  EXPECT_EQ(Cosines(same), (std::vector<double>{1, 1})) << same;
  WriteFile(Path("texts"), "the bread\nthe harbour\n");
  const std::string out =
      Convert({"--precision", "int8", "--embeddings", "int8", "--texts", Path("texts")});
  EXPECT_TRUE(Has(out, "2 texts")) << out;
  const std::vector<double> cosines = Cosines(out);
  ASSERT_EQ(cosines.size(), 4u) << out;
  for (const double cosine : cosines) {
    EXPECT_GT(cosine, 0.99);
    EXPECT_LT(cosine, 1);
  }
  EXPECT_LE(cosines[1], cosines[0]);
  EXPECT_FALSE(Has(Convert({"--precision", "int8"}), "osine")) << "asked for nothing of it";
}

TEST_F(ConvertEmbeddingsTest, InfoTellsOfThem) {
  Convert({"--precision", "int8", "--embeddings", "int8"});
  const CliResult info = Encore({"info", out_});
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_TRUE(Has(info.out, "int8, a scale a row")) << info.out;
  const CliResult memory = Encore({"info", "--weights", out_});
  EXPECT_EQ(memory.status, 0) << memory.err;
  EXPECT_TRUE(Has(memory.out, "Tables of embeddings, read where they lie: ")) << memory.out;
  EXPECT_TRUE(Has(memory.out, "of F32 and I8")) << memory.out;
}

TEST_F(ConvertEmbeddingsTest, BadScales) {
  Convert({"--precision", "f32", "--embeddings", "int8"});
  const ModelFolder converted(out_);
  const std::string scale = "word_embeddings.weight_scale";
  const auto set = [&](float value) {
    converted.ChangeWeights([&](SafetensorsEntry& entry) {
      if (!entry.name.ends_with(scale)) return true;
      std::vector<float>& numbers = kept_.emplace_back(entry.shape[0], 1.0f);
      numbers[3] = value;
      entry.bytes = std::as_bytes(std::span(numbers));
      return true;
    });
  };
  set(1);
  EXPECT_EQ(WhyNotOpened(converted.File("")), "");
  for (const float bad : {0.0f, -1.0f, 1e-40f, INFINITY, NAN}) {
    set(bad);
    const std::string why = WhyNotOpened(converted.File(""));
    EXPECT_TRUE(Has(why, scale + "'[3] is ")) << why;
    EXPECT_TRUE(Has(why, "wanted a finite, normal f32 number above 0")) << why;
  }
  converted.ChangeWeights(
      [&](const SafetensorsEntry& entry) { return !entry.name.ends_with(scale); });
  const std::string why = WhyNotOpened(converted.File(""));
  EXPECT_TRUE(Has(why, kTables[0] + "': found dtype I8; wanted F32")) << why;
}

TEST_F(ConvertEmbeddingsTest, WhatIsRefused) {
  const auto refuse = [&](const std::vector<std::string>& more,
                          const std::vector<std::string>& words) {
    std::vector<std::string> arguments = {"convert", folder_.path(), out_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::vector<std::string> before = Files();
    ExpectRefused(arguments, words);
    EXPECT_EQ(Files(), before);
  };
  refuse({"--precision", "f32"}, {"--precision is f32", "wanted bf16 or int8", "--embeddings"});
  refuse({"--precision", "int8", "--embeddings", "int4"}, {"--embeddings", "int4"});
  refuse({"--precision", "int8", "--texts", Path("none")}, {"none"});
  WriteFile(Path("texts"), "");
  refuse({"--precision", "int8", "--texts", Path("texts")}, {"--texts", "wanted at least one"});
  ExpectRefused({"convert", folder_.File("model.safetensors"), out_, "--precision", "int8",
                 "--embeddings", "int8"},
                {"--embeddings", "for a folder"});

  const ModelFolder large(folder_.path());
  ChangeTables(large, [](const SafetensorsEntry& entry, std::vector<float>& floats) {
    if (entry.name.ends_with(kTables[0])) floats[2 * entry.shape[1]] = 70000;  // above f16's 65504
  });
  ExpectRefused({"convert", large.File(""), out_, "--precision", "f32", "--embeddings", "f16"},
                {kTables[0] + "': row 2 has", "wanted finite ones for f16"});
  EXPECT_FALSE(std::filesystem::exists(out_));

  Convert({"--precision", "f32", "--embeddings", "int8"});
  ExpectRefused({"convert", out_, Path("twice"), "--precision", "int8", "--embeddings", "bf16"},
                {"found I8, which is converted already"});
  EXPECT_EQ(Encore({"convert", out_, Path("twice"), "--precision", "int8"}).status, 0);
}

}  // namespace
}  // namespace encore
