// SPDX-License-Identifier: Apache-2.0
//
// Classifiers of pictures against transformers in float64: logits, and the scores of its pipeline;
// their published bits; and how whole models compare pictures with texts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "encore/image_encoder.h"
#include "reference/accuracy.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/model_folder.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"
#include "tests/text/vision_folders.h"

namespace encore::pictures {
namespace {

using nlohmann::json;

struct HeadCase {
  const char* folder;
  const char* head;  // of Describe()
  uint64_t hash;     // of the logits
};

class ImageClassifiers : public testing::TestWithParam<HeadCase> {
 protected:
  std::string path() const { return kVision + GetParam().folder; }
  ImageEncoder Open() const { return Taken(ImageEncoder::Open(path())); }
};

TEST_P(ImageClassifiers, GiveLogitsAndScoresAsTransformersDoes) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const ImageEncoder model = Open();
  const auto known = std::find_if(model.Describe().begin(), model.Describe().end(),
                                  [](const Decision& d) { return d.what == "head"; });
  ASSERT_NE(known, model.Describe().end());
  EXPECT_EQ(known->value, GetParam().head);
  const double of_logits =
      LargestDifference(Floats(model.Classify(Views(), {.activation = ScoreActivation::kIdentity})),
                        ExpectedOf(path(), "logits"));
  const double of_scores =
      LargestDifference(Floats(model.Classify(Views())), ExpectedOf(path(), "scores"));
  std::printf("%-20s largest differences %.1e of logits, %.1e of scores\n", GetParam().folder,
              of_logits, of_scores);
  EXPECT_LE(of_logits, kTolerance);
  EXPECT_LE(of_scores, kTolerance);
}

TEST_P(ImageClassifiers, GiveThePublishedBitsInAnyBatchAndOrder) {
  const Executors executors;
  const std::vector<ImageView> views = Views();
  const std::vector<ImageView> turned(views.rbegin(), views.rend());
  ForEachTarget([&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    const ImageEncoder model = Open();
    ImageOptions options{.activation = ScoreActivation::kIdentity};
    const std::vector<float> found = Floats(model.Classify(views, options));
    const uint64_t hash = HashBits(found);
    EXPECT_EQ(hash, GetParam().hash) << GetParam().folder << " gave 0x" << std::hex << hash;
    const size_t labels = model.labels().size();
    for (const auto& named : executors) {
      options.executor = named.executor;
      options.batch_tokens += 40;
      const std::vector<float> rows = Floats(model.Classify(turned, options));
      ASSERT_EQ(rows.size(), found.size());
      for (size_t i = 0; i < views.size(); ++i) {
        EXPECT_TRUE(SameBits(std::span(rows).subspan(i * labels, labels),
                             std::span(found).subspan((views.size() - 1 - i) * labels, labels)))
            << named.name << " " << i;
      }
    }
  });
}

constexpr HeadCase kHeads[] = {
    {"vit_classifier", "2 labels: classifier(first row)", 0x3d0a472cf1274374},
    {"deit_classifier",
     "2 labels: mean of cls_classifier(first row) and distillation_classifier(second row)",
     0xb81c488ad1f81e37},
    {"deit_labels", "3 labels: classifier(first row)", 0x1e82ab36fb2c9e06},
    {"dinov2_gated", "2 labels: classifier(first row, mean of the patches)", 0xbfbac283290e7580},
    {"dinov2_labels", "1 label: classifier(first row, mean of the patches)", 0xf1a6f4465ecb469d},
    {"siglip_labels", "3 labels: classifier(mean of the patches)", 0xd8a8dfea0b4e6ebd},
    {"clip_labels", "3 labels: classifier(mean of the patches)", 0x300b4e7a6ac3fab},
};
INSTANTIATE_TEST_SUITE_P(All, ImageClassifiers, testing::ValuesIn(kHeads),
                         [](const auto& test) { return std::string(test.param.folder); });

TEST(ImageClassifierCalls, LabelsAndOptions) {
  const ImageEncoder model = Taken(ImageEncoder::Open(kVision + "siglip_labels"));
  EXPECT_EQ(model.labels(), (std::vector<std::string>{"a cat", "dog", "LABEL_2"}));
  EXPECT_EQ(model.Classify({}).value().size_bytes(), 0u);
  CallStats stats;
  const std::vector<float> one = Floats(model.Classify(
      {Views().data(), 1}, {.stats = &stats, .activation = ScoreActivation::kSoftmax}));
  EXPECT_EQ(one.size(), 3u);
  EXPECT_EQ(stats.texts, 1u);
  const auto error = [&](const ImageOptions& options) {
    return std::string(model.Classify(Views(), options).status().message());
  };
  EXPECT_TRUE(Has(error({.normalize = false}), "normalize"));
  EXPECT_TRUE(Has(error({.dimensions = 2}), "dimensions"));
  EXPECT_TRUE(Has(error({.activation = ScoreActivation::kAsCrossEncoder}), "as cross-encoder"));
  const ImageOptions classes{.activation = ScoreActivation::kSoftmax};
  EXPECT_TRUE(Has(std::string(model.Encode(Views(), classes).status().message()), "activation"));
  EXPECT_FALSE(model.EncodePatches(Views()[0], classes).ok());
  const ImageEncoder none = Taken(ImageEncoder::Open(kVision + "vit"));
  EXPECT_TRUE(none.labels().empty());
  EXPECT_EQ(none.Classify(Views()).status().code(), ErrorCode::kUnsupported);
}

TEST(ImageClassifierCalls, WholeModelsSayHowTextsAreCompared) {
  const std::optional<TextScale> clip =
      Taken(ImageEncoder::Open(kVision + "clip_zero_shot")).text_scale();
  ASSERT_TRUE(clip.has_value());
  EXPECT_EQ(clip->scale, 2.625f);
  EXPECT_FALSE(clip->bias.has_value());
  const std::optional<TextScale> siglip =
      Taken(ImageEncoder::Open(kVision + "siglip_zero_shot")).text_scale();
  ASSERT_TRUE(siglip && siglip->bias);
  EXPECT_EQ(siglip->scale, 2.625f);
  EXPECT_NE(*siglip->bias, 0);
  for (const char* const name : {"vit", "clip_vision", "clip_labels", "siglip_labels"}) {
    EXPECT_FALSE(Taken(ImageEncoder::Open(kVision + name)).text_scale().has_value()) << name;
  }
}

TEST(ImageClassifierCalls, WrongHeadsAreNamed) {
  const auto without = [](const char* name, const std::string& tensor) {
    const ModelFolder folder(kVision + name);
    folder.ChangeWeights([&](const SafetensorsEntry& e) { return e.name != tensor; });
    return ErrorOf(folder);
  };
  EXPECT_TRUE(Has(without("vit_classifier", "classifier.bias"), "classifier.bias"));
  EXPECT_TRUE(Has(without("deit_classifier", "cls_classifier.bias"), "cls_classifier.bias"));
  EXPECT_TRUE(
      Has(without("deit_classifier", "distillation_classifier.weight"), "'classifier.weight'"));
  const ModelFolder labels(kVision + "dinov2_labels");
  labels.SetKey("id2label", json{{"0", "a"}, {"1", "b"}});
  EXPECT_TRUE(Has(ErrorOf(labels), "classifier.weight")) << ErrorOf(labels);
  const ModelFolder problem(kVision + "deit_labels");
  problem.SetKey("problem_type", "guess");
  const ImageEncoder model = Taken(ImageEncoder::Open(problem.File("")));
  EXPECT_TRUE(Has(std::string(model.Classify(Views()).status().message()), "problem_type"));
  EXPECT_TRUE(model.Classify(Views(), {.activation = ScoreActivation::kSigmoid}).ok());
}

}  // namespace
}  // namespace encore::pictures
