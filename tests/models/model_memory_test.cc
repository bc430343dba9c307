// SPDX-License-Identifier: Apache-2.0
//
// What an open text model keeps of its file in memory: nothing until tokens are embedded, then the
// pages of their rows.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/models/text_model.h"
#include "tests/support/model_folder.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

using internal::TextModel;
using internal::TokenBatch;

constexpr size_t kMegabyte = size_t{1} << 20;

// Bytes of files that are this process's resident memory; none where the system does not tell.
std::optional<size_t> ResidentFileBytes() {
  if (kEmulated) return std::nullopt;
  std::ifstream status("/proc/self/status");
  std::optional<size_t> bytes;
  for (std::string key; status >> key;) {
    size_t kilobytes = 0;
    if ((key == "RssFile:" || key == "RssShmem:") && status >> kilobytes) {
      bytes = bytes.value_or(0) + kilobytes * 1024;
    }
  }
  return bytes;
}

TEST(ModelMemory, TheWordTableStaysInTheFileAndLayersLeaveIt) {
  constexpr size_t kVocabulary = 250000;  // as XLM-R's; of 32 columns: 32 MB
  constexpr size_t kInner = 30000;        // two layers: 15 MB
  ModelFolder folder(ENCORE_TEST_DATA_DIR "/models/bert");
  folder.SetKey("vocab_size", kVocabulary);
  folder.SetKey("intermediate_size", kInner);
  const std::vector<float> values(kVocabulary * 32, 0.5f);
  folder.ChangeWeights([&](SafetensorsEntry& e) {
    const std::string_view name = e.name;
    if (name == "embeddings.word_embeddings.weight") {
      e.shape = Shape(kVocabulary, 32);
    } else if (name.ends_with("intermediate.dense.weight")) {
      e.shape = Shape(kInner, 32);
    } else if (name.ends_with("intermediate.dense.bias")) {
      e.shape = Shape(kInner);
    } else if (name.ends_with("output.dense.weight") &&
               !name.ends_with("attention.output.dense.weight")) {
      e.shape = Shape(32, kInner);
    } else {
      return true;
    }
    e.bytes = std::as_bytes(std::span(values)).first(*e.shape.NumElements() * sizeof(float));
    return true;
  });
  const std::optional<size_t> before = ResidentFileBytes();
  if (!before) GTEST_SKIP() << "the system does not tell resident memory";
  const Result<TextModel> model = folder.Open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_LE(*ResidentFileBytes(), *before + 2 * kMegabyte);

  // A few rows take a few pages, and those that the system reads around them.
  const auto embed = [&](size_t count) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(i));
    std::vector<size_t> starts;
    for (size_t i = 0; i <= count; i += 100) starts.push_back(i);
    const TokenBatch batch{ids, {}, starts};
    ASSERT_TRUE(model->CheckTokens(batch).ok());
    std::vector<float> x(count * 32);
    ASSERT_TRUE(model->Embed(batch, MutableView(x.data(), {count, 32}), Executor()).ok());
  };
  embed(100);
  EXPECT_LE(*ResidentFileBytes(), *before + 4 * kMegabyte);
  // The measure itself: all of the table.
  embed(kVocabulary);
  EXPECT_GE(*ResidentFileBytes(), *before + 24 * kMegabyte);
}

}  // namespace
}  // namespace encore
