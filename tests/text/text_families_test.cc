// SPDX-License-Identifier: Apache-2.0
//
// Folders of every family with sentence-transformers' modules, from ids to vectors and scores: the
// published bits of each on every SIMD target with FMA, right values, and the same bits alone as in
// a batch.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "reference/accuracy.h"
#include "reference/drawn.h"
#include "tests/support/compare.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

struct FamilyCase {
  const char* folder;   // of tests/data/models
  const char* pooling;  // as a Pooling module names it
  int dense;            // how many dense modules follow
  uint64_t hash;        // of the vectors: what GoldenBits prints when they differ
};

constexpr FamilyCase kCases[] = {
    {"bert", "mean_tokens", 0, 0xbee72a4db181c4e8},
    {"distilbert", "mean_tokens", 0, 0x31f81d24a1c6fdd5},
    {"electra", "mean_tokens", 0, 0x1761ce665012af7e},
    {"albert", "mean_tokens", 0, 0xb794a8c7570d48fc},
    {"ernie", "mean_tokens", 0, 0xefb600e1e6a59f2e},
    {"roberta", "mean_tokens", 0, 0x32d473bf620ebc70},
    {"mpnet", "mean_tokens", 0, 0xc61f9b97592871bd},
    {"deberta_v2", "mean_tokens", 0, 0xc2faefd29ab4831f},
    {"deberta_v2_1", "cls_token", 0, 0xe99226c91c41813e},
    {"deberta_v2_conv", "mean_tokens", 0, 0xdb62e648295d012b},
    {"modernbert", "cls_token", 0, 0xd40bf6ea95a74ea8},
    {"modernbert_old", "mean_tokens", 0, 0x264348d38ae33fe3},
    {"nomic_bert_old", "mean_tokens", 0, 0x968df7be6c00b224},
    {"nomic_moe", "mean_tokens", 0, 0xbb0f946d03d6ac1d},
    {"gte", "mean_tokens", 0, 0x78fd5a58c9988f71},
    {"gte_new", "cls_token", 0, 0xada5407018208178},
    {"jina_bert", "mean_tokens", 0, 0xfce835103975e2b3},
    {"eurobert", "mean_tokens", 0, 0x2be23f60ead35a89},
    {"qwen3", "lasttoken", 0, 0x48753b9605c3c117},
    {"qwen3_old", "lasttoken", 0, 0x705acc8ec44b680b},
    {"gemma3_old", "mean_tokens", 2, 0xc99e4a746565af34},
    {"gemma3_causal", "lasttoken", 0, 0x61206ff19ce063fd},
    {"qwen3_pplx", "mean_tokens", 0, 0xed2d72bed3345873},
    {"qwen3_voyage", "mean_tokens", 0, 0xdca19665d651c0b3},
    {"qwen2", "lasttoken", 0, 0x82d06bbae73a1f5c},
    {"qwen2_gte", "mean_tokens", 0, 0xcb2505169ea140da},
    {"llama", "lasttoken", 0, 0x8033ec89a6109ec8},
    {"llama_bidirec", "mean_tokens", 0, 0x279f5782c896e3c3},
    {"mistral", "lasttoken", 0, 0x9a0dc9d4f7cf52f2},
    {"embedding_gemma2", "mean_tokens", 0, 0x15121cfb0bc49bdc},
    {"ultrabert", "mean_tokens", 0, 0xcc5f245f1aa2f5e5},
    {"t5", "mean_tokens", 1, 0x106c9d845a3d8302},
    {"t5_v1_1", "mean_tokens", 0, 0x9f38080324099115},
    {"esm_old", "mean_tokens", 0, 0x2523cb2ea09c7cb7},
    {"esm_1b", "mean_tokens", 0, 0x93141db9d3960356},
    {"clip_text", "lasttoken", 0, 0x26999220a336855f},
    {"jina_v3", "mean_tokens", 0, 0x4ec01dee22508215},
};

// The batch of a folder's expected.safetensors, sequence by sequence.
using Ids = std::vector<std::vector<int32_t>>;

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const std::string& name) {
  const Result<Tensor> tensor = file.Read(name);
  if (!tensor.ok() || tensor->dtype() != DTypeOf<T>::value) {
    ADD_FAILURE() << name << ": " << tensor.status().message();
    return {};
  }
  const auto* data = static_cast<const T*>(tensor->data());
  return std::vector<T>(data, data + tensor->size_bytes() / sizeof(T));
}

Ids ReadIds(const SafetensorsFile& file) {
  const auto ids = Values<int32_t>(file, "ids");
  const auto starts = Values<int64_t>(file, "seq_starts");
  Ids found;
  for (size_t b = 0; b + 1 < starts.size(); ++b) {
    found.emplace_back(ids.begin() + starts[b], ids.begin() + starts[b + 1]);
  }
  return found;
}

std::vector<float> Vectors(const Result<Embeddings>& result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.status().message();
    return {};
  }
  const auto* data = static_cast<const float*>(result->vectors.data());
  return std::vector<float>(data, data + result->vectors.size_bytes() / sizeof(float));
}

class TextFamilies : public testing::TestWithParam<FamilyCase> {
 protected:
  TextFamilies() : folder_(std::string("../models/") + GetParam().folder) {
    Result<SafetensorsFile> file = SafetensorsFile::Open(folder_.File("expected.safetensors"));
    if (!file.ok()) throw std::runtime_error(file.status().message());
    expected_ = *std::move(file);
    ids_ = ReadIds(*expected_);
    std::vector<std::string> after(static_cast<size_t>(GetParam().dense), "Dense");
    after.push_back("Normalize");
    folder_.WriteModules(after, {{std::string("pooling_mode_") + GetParam().pooling, true}});
    if (GetParam().dense >= 1) {
      folder_.AddDense("2_Dense", "2_Dense");
      folder_.WriteJson("2_Dense/config.json", {{"in_features", 32}, {"out_features", 20}});
    }
    if (GetParam().dense >= 2) {
      folder_.AddDense("3_Dense", "3_Dense");
      folder_.WriteJson("3_Dense/config.json",
                        {{"in_features", 20},
                         {"out_features", 12},
                         {"bias", false},
                         {"activation_function", "torch.nn.modules.linear.Identity"}});
    }
  }

  TextEncoder Open() const {
    Result<TextEncoder> model = TextEncoder::Open(folder_.path());
    if (!model.ok()) throw std::runtime_error(model.status().message());
    return *std::move(model);
  }

  TextFolder folder_;
  std::optional<SafetensorsFile> expected_;
  Ids ids_;
};

// Of these are the bits under an emulator, one family of each kind. The others differ in what is
// the same everywhere.
constexpr std::string_view kFewFolders[] = {"bert", "jina_bert", "modernbert", "qwen3", "t5"};

constexpr bool Emulated(std::string_view folder) {
  return std::find(std::begin(kFewFolders), std::end(kFewFolders), folder) != std::end(kFewFolders);
}

TEST_P(TextFamilies, GiveThePublishedBits) {
  if (kEmulated && !Emulated(GetParam().folder)) GTEST_SKIP() << "not under an emulator";
  ForEachTarget([&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    const uint64_t hash = HashBits(Vectors(Open().EncodeIds(ids_)));
    EXPECT_EQ(hash, GetParam().hash) << GetParam().folder << " gave 0x" << std::hex << hash;
  });
}

TEST_P(TextFamilies, GiveTheSameBitsAloneAsInABatch) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const TextEncoder model = Open();
  const size_t width = model.dimensions();
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 2}));
  const std::vector<float> all = Vectors(model.EncodeIds(ids_, {.executor = pool.executor()}));
  ASSERT_EQ(all.size(), ids_.size() * width);
  for (size_t b = 0; b < ids_.size(); ++b) {
    const std::vector<float> alone = Vectors(model.EncodeIds(std::span(ids_).subspan(b, 1)));
    EXPECT_TRUE(SameBits(alone, std::span(all).subspan(b * width, width))) << b;
  }
}

// Of the last token, or of the mean of all, where these are what transformers computed.
TEST_P(TextFamilies, GiveWhatTransformersGives) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const std::string pooling = GetParam().pooling;
  if (GetParam().dense != 0) return;  // text_encoder_test.cc
  // Ids come without types, which these were computed with.
  if (folder_.ReadJson("config.json").value("type_vocab_size", 1) > 1) return;
  const bool last = pooling == "lasttoken";
  if (!last && (pooling != "mean_tokens" || expected_->Find("vectors") == nullptr)) return;
  const TextEncoder model = Open();
  const size_t width = model.d_model();
  const std::vector<float> found = Vectors(model.EncodeIds(ids_));
  std::vector<double> expected;
  if (last) {
    const size_t layers = model.encoder().config().num_layers();
    const auto hidden = Values<float>(*expected_, "hidden." + std::to_string(layers - 1));
    const auto rows = Values<int64_t>(*expected_, "rows");
    const auto starts = Values<int64_t>(*expected_, "seq_starts");
    for (size_t b = 0; b + 1 < starts.size(); ++b) {
      const auto place = std::find(rows.begin(), rows.end(), starts[b + 1] - 1) - rows.begin();
      const float* row = hidden.data() + static_cast<size_t>(place) * width;
      double squares = 0;
      for (size_t c = 0; c < width; ++c) squares += std::pow(row[c], 2);
      for (size_t c = 0; c < width; ++c) expected.push_back(row[c] / std::sqrt(squares));
    }
  } else {
    expected = Values<double>(*expected_, "vectors");
  }
  double worst = 0;
  EXPECT_TRUE(Near(found, expected, 2e-6, &worst));
  std::printf("%-14s largest difference %.1e\n", GetParam().folder, worst * 2e-6);
}

INSTANTIATE_TEST_SUITE_P(All, TextFamilies, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.folder); });

// Heads that read the mean of all tokens; the last token that is not padding, where texts end with
// none and where all do, in a causal model and in another; and the last token of all.
TEST(TextFamiliesScores, AreTransformersWhateverTheHeadReads) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  for (const auto* name :
       {"modernbert_old", "qwen3_1", "gemma3_1", "llama_3", "mistral_1", "qwen2_3"}) {
    SCOPED_TRACE(name);
    const TextFolder folder(std::string("../models/") + name);
    const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
    const SafetensorsFile file = Taken(SafetensorsFile::Open(folder.File("expected.safetensors")));
    const Ids ids = ReadIds(file);
    const ScoreOptions logits{.activation = ScoreActivation::kIdentity};
    const Predictions all = Taken(model.ClassifyIds(ids, {}, logits));
    const auto* values = static_cast<const float*>(all.values.data());
    const std::vector<double> expected = Values<double>(file, "logits");
    const size_t labels = model.labels().size();
    ASSERT_EQ(expected.size(), ids.size() * labels);
    double largest = 0;
    for (const double logit : expected) largest = std::max(largest, std::fabs(logit));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(values[i], expected[i], 1e-6 * largest) << i;
    }
    for (size_t b = 0; b < ids.size(); ++b) {
      const Predictions alone = Taken(model.ClassifyIds(std::span(ids).subspan(b, 1), {}, logits));
      EXPECT_TRUE(SameBits({static_cast<const float*>(alone.values.data()), labels},
                           {values + b * labels, labels}))
          << b;
    }
  }
}

}  // namespace
}  // namespace encore
