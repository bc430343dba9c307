// SPDX-License-Identifier: Apache-2.0
//
// OpenOptions::cache: what of a folder decides whether its packed weights may be mapped, and what
// is told. What the file itself may do is in tests/nn/packed_cache_test.cc.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "tests/support/compare.h"
#include "tests/support/precisions.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

namespace fs = std::filesystem;

std::vector<float> VectorsOf(const TextEncoder& model) {
  const Embeddings found = Taken(model.Encode({"the bread", "these letters and the harbour"}));
  EXPECT_GT(found.vectors.size_bytes(), 0u);
  const auto* floats = static_cast<const float*>(found.vectors.data());
  return {floats, floats + found.vectors.size_bytes() / sizeof(float)};
}

class TextCacheTest : public testing::Test {
 protected:
  // Opens it with the cache; what is told of that.
  std::string Told(const std::string& folder, OpenOptions options = {},
                   const std::string& what = "packed weights") {
    const Result<TextEncoder> plain = TextEncoder::Open(folder, options);
    options.cache = cache_.File("cache");
    const Result<TextEncoder> model = TextEncoder::Open(folder, options);
    EXPECT_TRUE(plain.ok() && model.ok()) << model.status().message();
    if (!plain.ok() || !model.ok()) return "";
    EXPECT_TRUE(SameBits(VectorsOf(*model), VectorsOf(*plain)));
    for (const Decision& decision : model->Describe()) {
      if (decision.what == what) return decision.value + " | " + decision.source;
    }
    return "";
  }

  TemporaryFolder cache_;
};

TEST_F(TextCacheTest, AnOldFolderIsMapped) {
  // The checkout's own: none of its files is younger than two seconds.
  const std::string folder = ENCORE_TEST_DATA_DIR "/text/base";
  for (const Precision precision : kPrecisions) {
    EXPECT_EQ(Told(folder, {.precision = precision}), "packed and written | option cache");
    EXPECT_EQ(Told(folder, {.precision = precision}), "mapped | option cache");
    EXPECT_EQ(Told(folder, {.precision = precision, .weights = FileMemory::kCopied}),
              "mapped | option cache");
    EXPECT_EQ(Told(folder, {.precision = precision, .compare_cache = true}),
              "mapped, all panels compared | option cache");
    EXPECT_EQ(Told(folder, {.precision = precision, .trust_cache = true}),
              "mapped, not checked | option cache");
  }
  EXPECT_EQ(Told(folder, {.precision = Precision::kInt8, .keep = {{0, LayerMatrix::kQkv}}}),
            "packed and written | option cache");
}

TEST_F(TextCacheTest, ANewFolderIsCompared) {
  const TextFolder folder;
  EXPECT_EQ(Told(folder.path()), "packed and written | option cache");
  EXPECT_EQ(Told(folder.path()), "mapped, all panels compared | option cache");
  // Another model takes its place.
  const TextFolder other("reranker");
  fs::copy(other.path(), folder.path(),
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const TextEncoder model =
      Taken(TextEncoder::Open(folder.path(), {.cache = cache_.File("cache")}));
  EXPECT_EQ(model.encoder().cache_use(), "packed and written; the file there was of other weights");
}

TEST_F(TextCacheTest, ConfigJsonIsPartOfTheIdentity) {
  const std::string source = ENCORE_TEST_DATA_DIR "/text/base";
  const TextFolder folder;
  // The weights are old ones; config.json is not asked how old it is.
  fs::remove(folder.File("model.safetensors"));
  fs::create_symlink(fs::absolute(source + "/model.safetensors"), folder.File("model.safetensors"));
  EXPECT_EQ(Told(folder.path()), "packed and written | option cache");
  EXPECT_EQ(Told(folder.path()), "mapped | option cache");
  folder.PatchJson("config.json", {{"layer_norm_eps", 1e-6}});
  EXPECT_EQ(Told(folder.path()), "mapped, all panels compared and written | option cache");
  EXPECT_EQ(Told(folder.path()), "mapped | option cache");
}

// What its file may be is in tests/tokenizer/packed_tokenizer_test.cc.
TEST_F(TextCacheTest, TheTokenizerIsKeptToo) {
  const auto told = [&](const std::string& folder, const OpenOptions& options = {}) {
    return Told(folder, options, "packed tokenizer");
  };
  const std::string folder = ENCORE_TEST_DATA_DIR "/text/base";
  EXPECT_EQ(told(folder), "built and written | option cache");
  EXPECT_EQ(told(folder), "read | option cache");
  EXPECT_EQ(told(folder, {.trust_cache = true}), "read | option cache");
  EXPECT_EQ(told(folder, {.compare_cache = true}), "built and written | option cache");
}

TEST_F(TextCacheTest, APathThatIsNoneIsAnError) {
  EXPECT_TRUE(FailsWith(
      TextEncoder::Open(ENCORE_TEST_DATA_DIR "/text/base", {.cache = std::string("a\0b", 3)}),
      {"zero byte"}, kAnyCode));
}

TEST_F(TextCacheTest, RelativeEmbeddingsAreNotWritten) {
  OpenOptions options;
  options.cache = cache_.File("cache");
  const TextEncoder model =
      Taken(TextEncoder::Open(ENCORE_TEST_DATA_DIR "/models/deberta_v2", options));
  EXPECT_EQ(model.encoder().cache_use(), "packed, not written: layers have relative embeddings");
  EXPECT_FALSE(fs::exists(options.cache));
}

}  // namespace
}  // namespace encore
