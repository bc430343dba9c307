// SPDX-License-Identifier: Apache-2.0
//
// That tokenizing allocates nothing once its memory is warm. This program's operator new counts.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>

#include "encore/tokenizer.h"
#include "engine/tokenizer/tokenizer_factory.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace {
std::atomic<size_t> operator_news{0};

void* CountedNew(size_t size) {
  ++operator_news;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
// GCC sees free meet memory of operator new once it has inlined only one of the two.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

void* operator new(size_t n) { return CountedNew(n); }
void* operator new[](size_t n) { return CountedNew(n); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace encore {
namespace {

// Encodes the same texts twice, with each option: the second time there must be memory for all.
void ExpectNoneOnceWarm(const Result<Tokenizer>& tokenizer) {
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  // Letters with accents, Hangul, marks that are sorted, Chinese, added tokens, unknown words.
  std::string text =
      "A ba words, [SEP] ab \xC3\xA9t\xC3\xA9 \xEA\xB0\x81 o\xE3\x80\xAE\xCC\x81\xE3\x80\xAF "
      "\xE6\xBC\xA2 xyz \xFF";
  for (int i = 0; i < 6; ++i) text += text;
  Tokens tokens;
  const auto encode_all = [&] {
    bool ok = true;
    for (const bool offsets : {false, true}) {
      for (const size_t max_length : {size_t{0}, size_t{16}}) {
        const TokenizeOptions options = {.max_length = max_length,
                                         .on_invalid_utf8 = OnInvalidUtf8::kReplace,
                                         .offsets = offsets};
        ok = tokenizer->Encode(text, &tokens, options).ok() && ok;
        ok = tokenizer->EncodePair(text, "a b", &tokens, options).ok() && ok;
        ok = tokenizer->Encode("words", &tokens, options).ok() && ok;
      }
    }
    return ok;
  };
  const size_t cold = operator_news;
  ASSERT_TRUE(encode_all());
  EXPECT_GT(operator_news - cold, 0u);  // the counter counts
  const size_t warm = operator_news;
  EXPECT_TRUE(encode_all());
  EXPECT_EQ(operator_news - warm, 0u);
}

TEST(TokenizerAllocations, NoneOnceWarm) {
  ExpectNoneOnceWarm(internal::TokenizerFactory::FromVocab(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\nword\n##s\n,\n", {},
      R"({"added_tokens_decoder": {"12": {"content": "Ab", "normalized": true}}})"));
}

// Byte-pair encoding in both ways, and Unigram, with most normalizers and pre-tokenizers.
TEST(TokenizerAllocations, NoneOnceWarmOfOtherShapes) {
  for (const char* const name : {"qwen", "roberta_space_in_front", "gemma", "mistral", "clip", "t5",
                                 "camembert", "unigram_bare"}) {
    SCOPED_TRACE(name);
    std::ifstream file(ENCORE_TEST_DATA_DIR "/tokenizer/shape_" + std::string(name) + ".json");
    const nlohmann::json fixture = nlohmann::json::parse(file);
    ExpectNoneOnceWarm(internal::TokenizerFactory::FromJson(fixture["tokenizer"].dump()));
  }
}

}  // namespace
}  // namespace encore
