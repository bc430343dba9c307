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
#include "tests/support/peak_memory.h"
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
  internal::BatchScratch scratch;
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
  // The program's own pages count too: after this, those that opening takes are there.
  ASSERT_TRUE(ModelFolder(ENCORE_TEST_DATA_DIR "/models/bert").Open().ok());
  const std::optional<size_t> before = ResidentFileBytes();
  if (!before) GTEST_SKIP() << "the system does not tell resident memory";
  const TextModel model = Taken(folder.Open());
  EXPECT_LE(*ResidentFileBytes(), *before + 2 * kMegabyte);

  // A few rows take a few pages, and those that the system reads around them.
  const auto embed = [&](size_t count) {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(i));
    std::vector<size_t> starts;
    for (size_t i = 0; i <= count; i += 100) starts.push_back(i);
    const TokenBatch batch{ids, {}, starts};
    ASSERT_TRUE(model.CheckTokens(batch).ok());
    std::vector<float> x(count * 32);
    ASSERT_TRUE(model.Embed(batch, MutableView(x.data(), {count, 32}), &scratch, Executor()).ok());
  };
  embed(100);
  EXPECT_LE(*ResidentFileBytes(), *before + 4 * kMegabyte);
  // The measure itself: all of the table.
  embed(kVocabulary);
  EXPECT_GE(*ResidentFileBytes(), *before + 24 * kMegabyte);
}

// While opening: the packed weights, and of the file no more than a layer.
TEST(ModelMemory, ThePeakIsThePackedWeightsAndALayer) {
  constexpr size_t kInner = 60000;  // two layers of 2 * 1.9 million weights
  constexpr size_t kWeights = kInner * 32;
  const std::vector<float> values(kWeights, 0.5f);
  const std::vector<int8_t> integers(kWeights, 3);
  for (const bool int8 : {false, true}) {
    ModelFolder folder(ENCORE_TEST_DATA_DIR "/models/bert");
    folder.SetKey("intermediate_size", kInner);
    std::vector<SafetensorsEntry> scales;
    folder.ChangeWeights([&](SafetensorsEntry& e) {
      const std::string_view name = e.name;
      if (name.ends_with("intermediate.dense.weight")) {
        e.shape = Shape(kInner, 32);
      } else if (name.ends_with("intermediate.dense.bias")) {
        e.shape = Shape(kInner);
        e.bytes = std::as_bytes(std::span(values)).first(kInner * sizeof(float));
        return true;
      } else if (name.ends_with("output.dense.weight") &&
                 !name.ends_with("attention.output.dense.weight")) {
        e.shape = Shape(32, kInner);
      } else {
        return true;
      }
      e.bytes = std::as_bytes(std::span(values));
      if (int8) {
        e.dtype = DType::kI8;
        e.bytes = std::as_bytes(std::span(integers));
        scales.push_back({e.name + "_scale", DType::kF32, Shape(e.shape[0]),
                          std::as_bytes(std::span(values)).first(e.shape[0] * sizeof(float))});
      }
      return true;
    });
    if (int8) {
      folder.ChangeWeights([](SafetensorsEntry&) { return true; }, scales);
    }
    const size_t layer = 2 * kWeights * (int8 ? sizeof(int8_t) : sizeof(float));
    std::vector<Decision> decisions;
    size_t packed = 0;
    const std::optional<size_t> peak = PeakOf([&] {
      const OpenOptions options{.precision = int8 ? Precision::kInt8 : Precision::kF32};
      const TextModel model =
          Taken(TextModel::Open(*internal::Folder::Open(folder.File("")), options, &decisions));
      packed = model.encoder().packed_bytes();
    });
    if (!peak) GTEST_SKIP() << "the system does not tell the most resident memory";
    EXPECT_GE(packed, 2 * layer);
    EXPECT_GE(*peak, packed);
    EXPECT_LE(*peak, packed + layer + 4 * kMegabyte) << (int8 ? "int8" : "f32");
  }
}

}  // namespace
}  // namespace encore
