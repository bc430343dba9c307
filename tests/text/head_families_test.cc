// SPDX-License-Identifier: Apache-2.0
//
// Masked language models of the families in tests/data/heads beside transformers in float64, heads
// of published code beside their definition, and which of two decoders counts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <ios>
#include <span>
#include <string>
#include <vector>

#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "reference/caller_modes.h"
#include "tests/support/compare.h"
#include "tests/text/head_folders.h"

namespace encore {
namespace {

using nlohmann::json;

Result<TextEncoder> OpenMasked(const std::string& path) {
  OpenOptions options;
  options.language_head = true;
  return TextEncoder::Open(path, options);
}

std::vector<std::string> MaskedNames() {
  std::vector<std::string> names = FoldersNamed("mlm_");
  for (const char* published : {"new_gte", "published_nomic", "jina_bert"}) {
    names.emplace_back(published);
  }
  return names;
}

class MaskedFolders : public testing::TestWithParam<std::string> {};

TEST_P(MaskedFolders, GiveTheLogitsOfTransformers) {
  const json expected = ExpectedOf(GetParam());
  const std::vector<std::string> texts = TextsOf(expected);
  const TextEncoder model = Taken(OpenMasked(FolderOf(GetParam())));
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto positions = expected.at("positions").at(i).get<std::vector<size_t>>();
    const TokenLogits found = Taken(model.PredictTokens(texts[i], positions));
    ExpectNear(ValuesOf(found.logits), expected.at("logits").at(i));
  }
  // Without modules.json such a folder is SPLADE too.
  EXPECT_TRUE(model.EncodeSparse(texts).ok());
}

INSTANTIATE_TEST_SUITE_P(All, MaskedFolders, testing::ValuesIn(MaskedNames()),
                         [](const auto& test) { return test.param; });

class ScoreFolders : public testing::TestWithParam<const char*> {};

TEST_P(ScoreFolders, GiveTheLogitsOfTheirCode) {
  const json expected = ExpectedOf(GetParam());
  const TextEncoder model = Taken(TextEncoder::Open(FolderOf(GetParam())));
  ScoreOptions options;
  options.activation = ScoreActivation::kIdentity;
  const Predictions found = Taken(model.Classify(TextsOf(expected), options));
  ExpectNear(ValuesOf(found.values), expected.at("scores"));
}

INSTANTIATE_TEST_SUITE_P(All, ScoreFolders, testing::Values("llama_bidirec", "eurobert_late"),
                         [](const auto& test) { return std::string(test.param); });

// Logits are divided under the default modes, whatever the caller's are.
TEST(ScoreFolder, ATemperatureDividesAsEverywhere) {
  if (!reference::kHaveCallerModes) GTEST_SKIP() << "no modes to try on this machine";
  const CopiedFolder folder("llama_bidirec");
  json config = json::parse(std::ifstream(folder.path() + "/config.json"));
  config["temperature"] = 3;
  folder.Write("config.json", config.dump());
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  std::vector<std::string> texts;
  for (int i = 0; i < 30; ++i) texts.push_back("tea and bread " + std::to_string(i));
  const ScoreOptions options{.activation = ScoreActivation::kIdentity};
  const Predictions wanted = Taken(model.Classify(texts, options));
  const uint64_t before = reference::CallerState();
  for (const uint64_t modes : {reference::kFlushAndRoundUp, reference::kTowardZero}) {
    reference::SetCallerState(modes);
    const Result<Predictions> found = model.Classify(texts, options);
    reference::SetCallerState(before);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_TRUE(SameBits(ValuesOf(found->values), ValuesOf(wanted.values))) << std::hex << modes;
  }
}

// DeBERTa's new head has a bias of its own. transformers ties no other to it, though the class has
// one of that name in its old head.
TEST(MaskedFolder, OfDebertaLeavesTheOldHeadsBias) {
  const CopiedFolder folder("mlm_deberta_new");
  const SafetensorsFile file =
      Taken(SafetensorsFile::Open(FolderOf("mlm_deberta_new") + "/model.safetensors"));
  const Tensor bias = Taken(file.ReadAsF32("lm_predictions.lm_head.bias"));
  std::vector<SafetensorsEntry> entries(file.tensors().begin(), file.tensors().end());
  Tensor old = *Tensor::Create(DType::kF32, bias.shape());
  std::fill_n(static_cast<float*>(old.data()), bias.shape()[0], 7.0F);
  entries.push_back(MakeSafetensorsEntry("cls.predictions.decoder.bias", old));
  entries.push_back(MakeSafetensorsEntry("cls.predictions.bias", old));
  ASSERT_TRUE(WriteSafetensors(folder.path() + "/model.safetensors", entries).ok());
  const std::vector<size_t> positions = {0, 1};
  const Result<TextEncoder> one = OpenMasked(FolderOf("mlm_deberta_new"));
  const Result<TextEncoder> both = OpenMasked(folder.path());
  ASSERT_TRUE(one.ok() && both.ok()) << both.status().message();
  const Result<TokenLogits> wanted = one->PredictTokens("tea", positions);
  const Result<TokenLogits> found = both->PredictTokens("tea", positions);
  ASSERT_TRUE(wanted.ok() && found.ok());
  EXPECT_TRUE(SameBits(ValuesOf(found->logits), ValuesOf(wanted->logits)));
}

// As transformers 5 ties: only where the file does not have both.
TEST(MaskedFolder, ADecoderOfItsOwnCounts) {
  const CopiedFolder folder("mlm_gte");
  const TextEncoder tied = Taken(OpenMasked(folder.path()));
  const std::string path = folder.path() + "/model.safetensors";
  const SafetensorsFile file =
      Taken(SafetensorsFile::Open(FolderOf("mlm_gte") + "/model.safetensors"));
  std::vector<SafetensorsEntry> entries(file.tensors().begin(), file.tensors().end());
  const Tensor words = Taken(file.ReadAsF32("gte.embeddings.word_embeddings.weight"));
  Tensor decoder = *Tensor::Create(DType::kF32, words.shape());
  const std::span<const float> values = ValuesOf(words);
  for (size_t i = 0; i < values.size(); ++i) static_cast<float*>(decoder.data())[i] = -values[i];
  entries.push_back(MakeSafetensorsEntry("lm_head.decoder.weight", decoder));
  ASSERT_TRUE(WriteSafetensors(path, entries).ok());
  const TextEncoder own = Taken(OpenMasked(folder.path()));
  const Tensor bias = Taken(file.ReadAsF32("lm_head.decoder.bias"));
  const Result<TokenLogits> a = tied.PredictTokens("tea", std::vector<size_t>{1});
  const Result<TokenLogits> b = own.PredictTokens("tea", std::vector<size_t>{1});
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t i = 0; i < bias.shape()[0]; ++i) {
    const float twice = 2 * ValuesOf(bias)[i];
    EXPECT_NEAR(ValuesOf(a->logits)[i] + ValuesOf(b->logits)[i], twice, 1e-5);
  }
}

// Each is refused by the name of the tensor, before anything is computed.
TEST(MaskedFolder, RefusesAHeadWithoutItsTensors) {
  for (const std::string& name : MaskedNames()) {
    const CopiedFolder folder(name);
    const SafetensorsFile file =
        Taken(SafetensorsFile::Open(FolderOf(name) + "/model.safetensors"));
    std::vector<SafetensorsEntry> entries;
    std::string left_out;
    for (const SafetensorsEntry& entry : file.tensors()) {
      const bool of_head = entry.name.starts_with("lm_head.") || entry.name.starts_with("cls.") ||
                           entry.name.starts_with("lm_predictions.") ||
                           entry.name.starts_with("head.") || entry.name.starts_with("decoder.");
      if (of_head && left_out.empty()) {
        left_out = entry.name;
      } else {
        entries.push_back(entry);
      }
    }
    if (left_out.empty()) continue;  // a tied decoder alone
    ASSERT_TRUE(WriteSafetensors(folder.path() + "/model.safetensors", entries).ok());
    const Status status = OpenMasked(folder.path()).status();
    EXPECT_TRUE(status.code() == ErrorCode::kInvalidArgument ||
                status.code() == ErrorCode::kUnsupported)
        << name << ": " << left_out;
    EXPECT_NE(status.message().find("tensor '"), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace encore
