// SPDX-License-Identifier: Apache-2.0
//
// What a model keeps between calls: all of it is counted, and stays below a bound whatever texts
// came.

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
#include "tests/support/sanitizers.h"
#include "tests/support/text_case.h"

#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
#include <malloc.h>

namespace encore {
namespace {

using internal::Scratch;
using internal::ScratchPool;

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
  EXPECT_LE(HeapBytes(), before + ScratchPool::kMaxIdleBytes);
}

TEST(TextMemoryTest, APoolKeepsScratchUpToItsBound) {
  ScratchPool pool;
  const auto leave = [&](size_t bytes) {
    const ScratchPool::Lease lease = pool.Take();
    lease->type_ids.resize(bytes);
    lease->type_ids.shrink_to_fit();
    const Scratch* const scratch = lease.get();  // compared only: the pool has it now
    return scratch;
  };
  const Scratch* first = leave(size_t{1} << 20);
  EXPECT_GE(pool.idle_bytes(), size_t{1} << 20);
  EXPECT_EQ(leave(size_t{2} << 20), first) << "the idle one is taken";
  EXPECT_GE(pool.idle_bytes(), size_t{2} << 20);
  EXPECT_LT(pool.idle_bytes(), size_t{3} << 20);
  leave(ScratchPool::kMaxIdleBytes + 1);
  EXPECT_EQ(pool.idle_bytes(), 0u) << "none is kept";
  {
    // Two at once, of which the second to come back is too much.
    const ScratchPool::Lease a = pool.Take();
    const ScratchPool::Lease b = pool.Take();
    a->type_ids.resize(ScratchPool::kMaxIdleBytes / 3 * 2);
    b->type_ids.resize(ScratchPool::kMaxIdleBytes / 3 * 2);
  }
  EXPECT_GE(pool.idle_bytes(), ScratchPool::kMaxIdleBytes / 3 * 2);
  EXPECT_LE(pool.idle_bytes(), ScratchPool::kMaxIdleBytes);
}

}  // namespace
}  // namespace encore
#endif
