// SPDX-License-Identifier: Apache-2.0
//
// What a model takes and keeps between calls: all of it is counted, and stays below a bound
// whatever texts came.

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "encore/text_encoder.h"
#include "encore/tokenizer.h"
#include "engine/text/scratch.h"
#include "engine/tokenizer/tokenizer_factory.h"
#include "engine/tokenizer/tokenizer_parts.h"
#include "nlohmann/json.hpp"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/sanitizers.h"
#include "tests/support/text_case.h"

#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
#include <malloc.h>

namespace encore {
namespace {

using internal::CallScratch;
using internal::ScratchPool;

constexpr size_t kKept = size_t{128} << 20;  // OpenOptions' default

// Bytes that are allocated.
size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::string Repeated(std::string_view word, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += word;
  return text;
}

TEST(TextMemoryTest, AllThatATokenizerWorksWithIsCounted) {
  if (kSanitized || kEmulated) GTEST_SKIP() << "they have an allocator of their own";
  const std::string words =
      Repeated("caf\xC3\xA9 Z\xCC\x88 \xEF\xAC\x81nd 1998, ", size_t{1} << 18);
  const std::string word(size_t{1} << 18, 'e');
  size_t tokenizers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ENCORE_TEST_DATA_DIR "/tokenizer")) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const auto json = nlohmann::json::parse(file);
    const Tokenizer tokenizer =
        Taken(internal::TokenizerFactory::FromJson(json["tokenizer"].dump(), {}));
    for (const std::string& text : {words, word}) {
      for (const bool offsets : {false, true}) {
        const size_t before = HeapBytes();
        Tokens tokens;
        ASSERT_TRUE(tokenizer.Encode(text, &tokens, {.offsets = offsets}).ok());
        const auto taken = static_cast<double>(HeapBytes() - before);
        const auto counted = static_cast<double>(internal::MemoryOf(tokens));
        EXPECT_GE(counted, taken * 0.95 - 4096);
        EXPECT_LE(counted, taken * 1.05 + 4096);
      }
    }
    ++tokenizers;
  }
  EXPECT_GT(tokenizers, 20u);
}

TEST(TextMemoryTest, AHugeTextLeavesNoMoreThanTheBound) {
  if (kSanitized || kEmulated) GTEST_SKIP() << "they have an allocator of their own";
  const TextFolder folder;
  const TextEncoder model = Taken(TextEncoder::Open(folder.path()));
  ASSERT_TRUE(model.Encode({"the bread"}).ok());
  const std::string text = Repeated("the bread ", size_t{24} << 20);
  const size_t before = HeapBytes();
  ASSERT_TRUE(model.Encode({text}).ok());
  EXPECT_LE(HeapBytes(), before + kKept);
}

TEST(TextMemoryTest, APoolKeepsScratchUpToItsBound) {
  ScratchPool pool(kKept);
  const auto leave = [&](size_t bytes) {
    const ScratchPool::Lease lease = pool.Take();
    lease->type_ids.resize(bytes);
    lease->type_ids.shrink_to_fit();
    const CallScratch* const scratch = lease.get();  // compared only: the pool has it now
    return scratch;
  };
  const CallScratch* first = leave(size_t{1} << 20);
  EXPECT_GE(pool.idle_bytes(), size_t{1} << 20);
  EXPECT_EQ(leave(size_t{2} << 20), first) << "the idle one is taken";
  EXPECT_GE(pool.idle_bytes(), size_t{2} << 20);
  EXPECT_LT(pool.idle_bytes(), size_t{3} << 20);
  leave(kKept + 1);
  EXPECT_EQ(pool.idle_bytes(), 0u) << "none is kept";
  {
    // Two at once, of which the second to come back is too much.
    const ScratchPool::Lease a = pool.Take();
    const ScratchPool::Lease b = pool.Take();
    a->type_ids.resize(kKept / 3 * 2);
    b->type_ids.resize(kKept / 3 * 2);
  }
  EXPECT_GE(pool.idle_bytes(), kKept / 3 * 2);
  EXPECT_LE(pool.idle_bytes(), kKept);
}

// A dense model of some size: two layers of 512, and a table of 8000 words.
class LargeFolder {
 public:
  LargeFolder() {
    folder_.WriteModules();
    folder_.PatchJson(
        "config.json",
        {{"hidden_size", kWidth}, {"intermediate_size", kWidth * 3 / 2}, {"vocab_size", kWords}});
    const std::string name = folder_.File("model.safetensors");
    nlohmann::json header;
    size_t end = 0;
    {
      const Result<SafetensorsFile> small = SafetensorsFile::Open(name);
      for (const SafetensorsEntry& entry : small->tensors()) {
        nlohmann::json shape = nlohmann::json::array();
        size_t bytes = sizeof(float);
        for (size_t i = 0; i < entry.shape.rank(); ++i) {
          const size_t extent = entry.shape[i];
          shape.push_back(extent == 300                  ? kWords
                          : extent == 32 || extent == 48 ? extent * kWidth / 32
                                                         : extent);
          bytes *= shape.back().get<size_t>();
        }
        header[entry.name] = {
            {"dtype", "F32"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
        end += bytes;
      }
    }
    std::filesystem::remove(name);
    WriteBytes(name, SafetensorsBytes(header.dump(), std::string(end, '\0')));
  }

  std::string path() const { return folder_.path(); }
  std::string File(const std::string& name) const { return folder_.File(name); }
  static constexpr size_t kWidth = 512;
  static constexpr size_t kWords = 8000;
  static constexpr size_t kTableBytes = kWords * kWidth * sizeof(float);

 private:
  TextFolder folder_;
};

// Bytes of address space that map files of this folder.
size_t MappedBytes(const std::string& folder) {
  std::ifstream maps("/proc/self/maps");
  size_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(folder) == std::string::npos) continue;
    size_t dash = 0;
    const size_t begin = std::stoull(line, &dash, 16);
    bytes += std::stoull(line.substr(dash + 1), nullptr, 16) - begin;
  }
  return bytes;
}

TEST(TextMemoryTest, AModelTakesWhatItSays) {
  if (kSanitized || kEmulated) GTEST_SKIP() << "they have an allocator of their own";
  const LargeFolder folder;
  const size_t cold = HeapBytes();
  const Result<Tokenizer> tokenizer = Tokenizer::Open(folder.path());
  ASSERT_TRUE(tokenizer.ok());
  const size_t tokenizer_bytes = HeapBytes() - cold;
  const OpenOptions with_cache{.cache = folder.File("cache")};
  ASSERT_TRUE(TextEncoder::Open(folder.path(), with_cache).ok());
  const std::pair<const char*, OpenOptions> ways[] = {
      {"mapped", {}},
      {"copied", {.weights = FileMemory::kCopied}},
      {"bf16", {.precision = Precision::kBF16}},
      {"int8, copied", {.precision = Precision::kInt8, .weights = FileMemory::kCopied}},
      {"cached", with_cache}};
  for (const auto& [name, options] : ways) {
    SCOPED_TRACE(name);
    const size_t before = HeapBytes();
    const Result<TextEncoder> model = TextEncoder::Open(folder.path(), options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const size_t taken = HeapBytes() - before;
    const ModelMemory memory = model->Memory();
    // Large pieces begin at multiples of 2 MiB.
    EXPECT_GE(taken, memory.packed + memory.tables);
    EXPECT_LE(taken, memory.packed + memory.tables + tokenizer_bytes + (size_t{5} << 20));
    const size_t mapped = MappedBytes(folder.path());
    EXPECT_LE(memory.mapped, mapped);
    EXPECT_GE(memory.mapped + 2 * 4096, mapped);
    const bool copied = options.weights == FileMemory::kCopied;
    EXPECT_EQ(mapped == 0, copied);
    EXPECT_EQ(memory.tables >= LargeFolder::kTableBytes, copied);
    EXPECT_EQ(memory.packed == 0, !options.cache.empty());
    EXPECT_EQ(memory.scratch, 0u);
  }
}

TEST(TextMemoryTest, WhatIsKeptIsGivenBack) {
  if (kSanitized || kEmulated) GTEST_SKIP() << "they have an allocator of their own";
  const TextFolder folder;
  const Result<TextEncoder> model = TextEncoder::Open(folder.path());
  const Result<TextEncoder> other = TextEncoder::Open(folder.path(), {.kept_bytes = 0});
  ASSERT_TRUE(model.ok() && other.ok());
  const std::string text = Repeated("the bread ", size_t{1} << 20);
  const size_t before = HeapBytes();
  ASSERT_TRUE(model->Encode({text}).ok());
  const size_t kept = model->Memory().scratch;
  EXPECT_GT(kept, size_t{1} << 20);
  EXPECT_GE(HeapBytes(), before + kept - kept / 20);
  model->TrimMemory();
  EXPECT_EQ(model->Memory().scratch, 0u);
  EXPECT_LE(HeapBytes(), before + 65536);
  ASSERT_TRUE(other->Encode({text}).ok());
  EXPECT_EQ(other->Memory().scratch, 0u);
  EXPECT_LE(HeapBytes(), before + 65536);
}

TEST(TextMemoryTest, AScratchIsGivenBack) {
  if (kSanitized || kEmulated) GTEST_SKIP() << "they have an allocator of their own";
  const TextFolder folder;
  const Result<TextEncoder> model = TextEncoder::Open(folder.path());
  ASSERT_TRUE(model.ok());
  const size_t before = HeapBytes();
  Scratch scratch;
  EXPECT_EQ(scratch.size_bytes(), 0u);
  ASSERT_TRUE(model->Prepare(4096, {}, &scratch).ok());
  EXPECT_GT(scratch.size_bytes(), size_t{1} << 20);
  EXPECT_GE(HeapBytes() + 65536, before + scratch.size_bytes());
  EXPECT_EQ(model->Memory().scratch, 0u) << "the model keeps nothing";
  Scratch moved = std::move(scratch);
  EXPECT_GT(moved.size_bytes(), size_t{1} << 20);
  moved = Scratch();
  EXPECT_LE(HeapBytes(), before + 65536);
}

}  // namespace
}  // namespace encore
#endif
