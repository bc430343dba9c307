// SPDX-License-Identifier: Apache-2.0
//
// The folders of tests/data/vision against transformers in float64, on nine kinds of pictures; the
// published bits of each on every SIMD target with FMA; and the same bits whatever the batch, the
// order, the threads and the precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "encore/image_encoder.h"
#include "reference/accuracy.h"
#include "reference/drawn.h"
#include "tests/support/compare.h"
#include "tests/support/executors.h"
#include "tests/support/model_folder.h"
#include "tests/support/precisions.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"
#include "tests/text/vision_folders.h"

namespace encore::pictures {
namespace {

using nlohmann::json;

struct VisionCase {
  const char* folder;
  uint64_t hash;  // of the vectors: what GiveThePublishedBits prints when they differ
};

class ImageEncoders : public testing::TestWithParam<VisionCase> {
 protected:
  std::string path() const { return kVision + GetParam().folder; }
  ImageEncoder Open(const OpenOptions& options = {}) const {
    return Taken(ImageEncoder::Open(path(), options));
  }
  std::vector<double> Expected(const std::string& name) const { return ExpectedOf(path(), name); }
};

TEST_P(ImageEncoders, GiveWhatTransformersGives) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const ImageEncoder model = Open();
  const std::vector<float> found = Floats(model.Encode(Views()));
  ASSERT_EQ(found.size(), Pictures().size() * model.dimensions());
  const double of_vectors = LargestDifference(found, Expected("vectors"));
  const PatchVectors patches = Taken(model.EncodePatches(Views()[0]));
  EXPECT_EQ(patches.first_patch + patches.rows * patches.columns, model.tokens());
  const double of_states = LargestDifference(Floats(patches.vectors), Expected("states"));
  std::printf("%-20s largest differences %.1e of vectors, %.1e of states\n", GetParam().folder,
              of_vectors, of_states);
  EXPECT_LE(of_vectors, kTolerance);
  EXPECT_LE(of_states, kTolerance);
}

TEST_P(ImageEncoders, GiveThePublishedBits) {
  ForEachTarget([&](const std::string& target) {
    if (!reference::TargetHasFma(target)) return;
    const uint64_t hash = HashBits(Floats(Open().Encode(Views())));
    EXPECT_EQ(hash, GetParam().hash) << GetParam().folder << " gave 0x" << std::hex << hash;
  });
}

// In each precision the best target's bits alone are those of each target with FMA, in batches of
// 1, of some and of all pictures, in other orders, by two of all executors in turn.
TEST_P(ImageEncoders, GiveTheSameBitsWhateverTheBatch) {
  if (kEmulated) GTEST_SKIP() << "takes minutes under an emulator";
  const Executors executors;
  const std::vector<ImageView> views = Views();
  std::mt19937 random(7);
  auto named = executors.begin();
  for (const Precision precision : kPrecisions) {
    SCOPED_TRACE(PrecisionName(precision));
    const ImageEncoder best = Open({.precision = precision});
    std::vector<std::vector<float>> alone;
    for (const ImageView& view : views) alone.push_back(Floats(best.Encode({&view, 1})));
    ForEachTarget([&](const std::string& target) {
      if (!reference::TargetHasFma(target)) return;
      const ImageEncoder model = Open({.precision = precision});
      for (int run = 0; run < 2; ++run) {
        if (named == executors.end()) named = executors.begin();
        SCOPED_TRACE(named->name);
        std::vector<size_t> order(views.size());
        std::iota(order.begin(), order.end(), size_t{0});
        std::shuffle(order.begin(), order.end(), random);
        std::vector<ImageView> shuffled;
        for (const size_t i : order) shuffled.push_back(views[i]);
        const std::vector<float> found = Floats(model.Encode(
            shuffled, {.executor = (named++)->executor, .batch_tokens = random() % 3 * 40}));
        ASSERT_EQ(found.size(), views.size() * model.dimensions());
        for (size_t i = 0; i < order.size(); ++i) {
          EXPECT_TRUE(SameBits(std::span(found).subspan(i * model.dimensions(), model.dimensions()),
                               alone[order[i]]))
              << order[i];
        }
      }
    });
  }
}

// More patches than are taken at once, the last of them in the middle of a picture of 15.
TEST(ImageEncoderCalls, ManyPicturesInABatchHaveTheBitsOfFew) {
  const ImageEncoder model = Taken(ImageEncoder::Open(kVision + "dinov2_registers"));
  const std::vector<float> few = Floats(model.Encode(Views()));
  std::vector<ImageView> views;
  for (int i = 0; i < 5; ++i) {
    for (const ImageView& view : Views()) views.push_back(view);
  }
  const std::vector<float> many = Floats(model.Encode(views, {.batch_tokens = 100000}));
  ASSERT_EQ(many.size(), 5 * few.size());
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(SameBits(std::span(many).subspan(i * few.size(), few.size()), few)) << i;
  }
}

constexpr VisionCase kCases[] = {
    {"clip", 0x774c98ac9ce2b157},
    {"clip_sentence", 0xad0a56786d1dbf0e},
    {"clip_vision", 0x5264a7b403419c8f},
    {"clip_projection", 0xd6997f77280a4a3f},
    {"siglip", 0xff639caae5d72a68},
    {"siglip_vision", 0xbe844da36dc1306b},
    {"vit", 0x855e1f927628079d},
    {"vit_pooler", 0x8ca17451ac416f16},
    {"vit_classifier", 0xd024ff082de073d1},
    {"deit", 0x2d79fc2fb5114ea8},
    {"deit_classifier", 0x81cf9da7d4415fbd},
    {"dinov2", 0xf15800a9e424e123},
    {"dinov2_gated", 0x53f485deb1dda92c},
    {"dinov2_registers", 0x6a9fedacbc688c3f},
    {"dinov2_registers_up", 0xca78ad2011d06ebc},
    {"dinov3", 0xb5d8278595e79910},
    {"dinov3_gated", 0xd6cee9e018d799dd},
    {"deit_labels", 0xa7115b48a80e7d0f},
    {"dinov2_labels", 0xe0fb5aa04c47a273},
    {"siglip_labels", 0xce6ef3575fa32f7d},
    {"clip_labels", 0xee3341be0325fc78},
};
INSTANTIATE_TEST_SUITE_P(All, ImageEncoders, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.folder); });

// ---- What is refused, and what is noted.

TEST(ImageEncoderFolders, KeysThatChangeTheResultAreRefusedByName) {
  struct Key {
    const char* folder;
    const char* key;
    json value;
  };
  const Key keys[] = {
      {"vit", "num_channels", 1},
      {"vit", "image_size", json::array({32, 40})},
      {"vit", "patch_size", 0},
      {"vit", "patch_size", 4096},
      {"vit", "image_size", 7},
      {"vit", "pooler_act", "wave"},
      {"vit", "mlp_ratio", 3},
      {"vit", "num_register_tokens", 2},
      {"vit", "vocab_size", 30},
      {"vit", "hidden_act", "wave"},
      {"siglip_vision", "vision_use_head", false},
      {"dinov2", "mlp_ratio", -1},
      {"dinov2_registers", "num_register_tokens", 4},
      {"clip_vision", "num_hidden_layers", 3},
      {"dinov3", "num_register_tokens", 0},
      {"dinov3", "num_register_tokens", 5},
      {"dinov3", "key_bias", true},
      {"dinov3", "use_gated_mlp", true},
      {"dinov3", "rope_theta", 0},
      {"dinov3", "rope_scaling", json{{"rope_type", "linear"}}},
      {"dinov3", "qkv_bias", false},
      {"vit", "use_gated_mlp", true},
  };
  for (const Key& key : keys) {
    SCOPED_TRACE(key.key);
    const ModelFolder folder(kVision + key.folder);
    folder.SetKey(key.key, key.value);
    const std::string error = ErrorOf(folder);
    const bool of_tensor = Has(error, "register_tokens") || Has(error, "encoder.layers.2") ||
                           Has(error, "mlp.gate_proj") || Has(error, "k_proj.bias");
    EXPECT_TRUE(Has(error, key.key) || of_tensor) << error;
  }
}

TEST(ImageEncoderFolders, ModelsOfTextsAndOthersAreNamed) {
  const ModelFolder text(kModels + "bert");
  text.Write("preprocessor_config.json", json{{"image_processor_type", "ViTImageProcessor"},
                                              {"size", {{"height", 32}, {"width", 32}}}}
                                             .dump());
  EXPECT_TRUE(Has(ErrorOf(text), "TextEncoder opens them"));
  const ModelFolder vit(kVision + "vit");
  const Result<TextEncoder> opened = TextEncoder::Open(vit.File(""));
  ASSERT_FALSE(opened.ok());
  EXPECT_TRUE(Has(std::string(opened.status().message()), "ImageEncoder opens them"));
  vit.SetKey("model_type", "siglip2");
  EXPECT_TRUE(Has(ErrorOf(vit), "siglip2"));
  const ModelFolder none(kVision + "vit");
  none.Remove("preprocessor_config.json");
  EXPECT_TRUE(Has(ErrorOf(none), "preprocessor_config.json"));
  EXPECT_TRUE(Has(ErrorOf(ModelFolder(kVision + "vit"), {.max_length = 7}), "max_length"));
}

TEST(ImageEncoderFolders, ATensorOfAnotherShapeIsNamed) {
  const ModelFolder folder(kVision + "deit");
  folder.SetKey("image_size", 40);
  EXPECT_TRUE(Has(ErrorOf(folder), "embeddings.position_embeddings")) << ErrorOf(folder);
  const ModelFolder clip(kVision + "clip");
  clip.ChangeWeights(
      [](const SafetensorsEntry& e) { return e.name != "visual_projection.weight"; });
  EXPECT_TRUE(Has(ErrorOf(clip), "visual_projection.weight"));
}

TEST(ImageEncoderFolders, APictureAtFaultIsNamed) {
  const ImageEncoder model = Taken(ImageEncoder::Open(kVision + "vit"));
  std::vector<ImageView> views = Views();
  views[4].channels = 2;
  const Status status = model.Encode(views).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Has(std::string(status.message()), "image 4")) << status.message();
  EXPECT_EQ(model.Encode({}).value().size_bytes(), 0u);
  for (const bool normalize : {false, true}) {
    EXPECT_FALSE(model.EncodePatches(views[0], {.normalize = normalize}).ok());
  }
  EXPECT_EQ(model.Encode(Views(), {.dimensions = 33}).status().code(), ErrorCode::kInvalidArgument);
}

// The first columns, made of length 1 after the cut; and what a call reports.
TEST(ImageEncoderCalls, CutNormalizeAndReport) {
  const ImageEncoder model = Taken(ImageEncoder::Open(kVision + "clip"));
  CallStats stats;
  size_t done = 0;
  const std::vector<float> found =
      Floats(model.Encode(Views(), {.normalize = true,
                                    .dimensions = 5,
                                    .batch_tokens = 34,
                                    .stats = &stats,
                                    .progress = [&](const CallProgress& p) { done = p.texts; }}));
  ASSERT_EQ(found.size(), 9u * 5u);
  double squares = 0;
  for (size_t c = 0; c < 5; ++c) squares += static_cast<double>(found[c]) * found[c];
  EXPECT_NEAR(squares, 1, 1e-6);
  EXPECT_EQ(stats.texts, 9u);
  EXPECT_EQ(stats.tokens, 9u * model.tokens());
  EXPECT_EQ(done, 9u);
}

TEST(ImageEncoderCalls, PrepareMakesTheMemory) {
  const ImageEncoder model = Taken(ImageEncoder::Open(kVision + "siglip"));
  EXPECT_EQ(model.Memory().scratch, 0u);
  ASSERT_TRUE(model.Prepare(9).ok());
  const size_t kept = model.Memory().scratch;
  EXPECT_GT(kept, 0u);
  const std::vector<float> found = Floats(model.Encode(Views()));
  EXPECT_EQ(model.Memory().scratch, kept);
  Scratch scratch;
  ASSERT_TRUE(model.Prepare(9, {}, &scratch).ok());
  const size_t bytes = scratch.size_bytes();
  EXPECT_TRUE(SameBits(Floats(model.Encode(Views(), {.scratch = &scratch})), found));
  EXPECT_EQ(scratch.size_bytes(), bytes);
  EXPECT_EQ(model.Prepare(0).code(), ErrorCode::kInvalidArgument);
  const ImageEncoder small = Taken(ImageEncoder::Open(kVision + "siglip", {.kept_bytes = 100}));
  EXPECT_TRUE(Has(std::string(small.Prepare(9).message()), "kept_bytes is 100"));
}

// A cache has the layers of pictures beside those of texts, of the same sizes.
TEST(ImageEncoderCalls, TheCacheHasBothSidesOfAFolder) {
  const TemporaryFolder cache;
  const OpenOptions options{.cache = cache.path()};
  const std::vector<float> expected =
      Floats(Taken(ImageEncoder::Open(kVision + "siglip")).Encode(Views()));
  for (const char* const use : {"packed and written", "mapped", "mapped"}) {
    const ImageEncoder model = Taken(ImageEncoder::Open(kVision + "siglip", options));
    EXPECT_EQ(model.encoder().cache_use(), use);
    EXPECT_TRUE(SameBits(Floats(model.Encode(Views())), expected));
    const TextEncoder texts = Taken(TextEncoder::Open(kVision + "siglip", options));
    EXPECT_EQ(texts.encoder().cache_use(), use);
  }
}

}  // namespace
}  // namespace encore::pictures
