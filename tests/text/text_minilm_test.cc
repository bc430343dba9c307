// SPDX-License-Identifier: Apache-2.0
//
// The real all-MiniLM-L6-v2, where tools/fetch_model.sh could fetch it or ENCORE_MINILM names its
// folder: vectors against sentence-transformers in float64.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "encore/thread_pool.h"
#include "nlohmann/json.hpp"
#include "tests/support/compare.h"

namespace encore {
namespace {

std::string MiniLmFolder() {
  const char* named = std::getenv("ENCORE_MINILM");
  if (named != nullptr && *named != '\0') return named;
  return ENCORE_SOURCE_DIR "/.deps/models/all-MiniLM-L6-v2";
}

TEST(MiniLmTest, GivesWhatSentenceTransformersGives) {
  if (!std::filesystem::exists(MiniLmFolder())) {
    GTEST_SKIP() << "there is no " << MiniLmFolder() << "; tools/fetch_model.sh fetches it";
  }
  const SafetensorsFile file =
      Taken(SafetensorsFile::Open(ENCORE_TEST_DATA_DIR "/text/minilm.safetensors"));
  const auto texts =
      nlohmann::json::parse(file.metadata().at("texts")).get<std::vector<std::string>>();
  const Result<Tensor> vectors = file.Read("vectors");
  const Result<Tensor> tokens = file.Read("tokens");
  ASSERT_TRUE(vectors.ok() && tokens.ok());
  ASSERT_EQ(vectors->shape(), Shape(texts.size(), 384));
  const auto* wanted = static_cast<const float*>(vectors->data());
  const std::vector<double> want(wanted, wanted + texts.size() * 384);
  const auto* counts = static_cast<const int64_t*>(tokens->data());

  ThreadPool pool = *ThreadPool::Create({.threads = 2});
  const TextEncoder model = Taken(TextEncoder::Open(MiniLmFolder(), {.executor = pool.executor()}));
  EXPECT_EQ(model.max_length(), 256u);
  const Embeddings all = Taken(model.Encode(texts, {.executor = pool.executor()}));
  const auto* got = static_cast<const float*>(all.vectors.data());
  double worst = 0;
  constexpr double kTolerance = 1e-6;
  EXPECT_TRUE(Near({got, want.size()}, want, kTolerance, &worst));
  std::printf("largest difference: %.2g\n", worst * kTolerance);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(all.counts.tokens[i], static_cast<size_t>(counts[i])) << texts[i].substr(0, 60);
  }
  // The last five have 3, 255, 256, 257 and 2542 tokens before cutting.
  const std::vector<size_t> cut(all.counts.cut.end() - 5, all.counts.cut.end());
  EXPECT_EQ(cut, (std::vector<size_t>{0, 0, 0, 1, 2286}));
  for (const size_t i : {size_t{0}, texts.size() - 1}) {
    const Embeddings alone = Taken(model.Encode({texts[i]}));
    EXPECT_TRUE(
        SameBits({static_cast<const float*>(alone.vectors.data()), 384}, {got + i * 384, 384}));
  }
}

}  // namespace
}  // namespace encore
