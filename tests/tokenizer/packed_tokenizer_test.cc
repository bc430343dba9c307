// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers by the packed tables of a cache are those that their folders make; a file that is
// damaged, old or strange is built again, and nothing of it is believed that could do harm.

#include "engine/tokenizer/packed_tokenizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/base/checksum.h"
#include "engine/tokenizer/byte_trie.h"
#include "engine/tokenizer/tokenizer_factory.h"
#include "nlohmann/json.hpp"
#include "tests/support/results.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/sanitizers.h"

namespace encore {
namespace {

namespace fs = std::filesystem;
using internal::TokenizerFactory;
using internal::WithoutVocabulary;
using nlohmann::json;

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

const std::vector<std::string> kTexts = {
    "The bread, these letters and the harbour",
    "unaffable  \t tea\nÄrger 你好 نص \u2581x <s>[MASK]</s> 12345",
    "",
    "a",
    std::string(300, 'x') + " \U0001F600 e\u0301",
};

class PackedTokenizerTest : public testing::Test {
 protected:
  Tokenizer Plain(const std::string& folder) { return Taken(Tokenizer::Open(folder)); }
  Tokenizer Cached(const std::string& folder, bool rebuild = false) {
    return Taken(TokenizerFactory::OpenWith({}, folder, {},
                                            {.folder = cache_.File("cache"), .rebuild = rebuild}));
  }
  // The one file of the cache.
  fs::path File() const {
    const std::vector<fs::path> files{fs::directory_iterator(cache_.File("cache")), {}};
    EXPECT_EQ(files.size(), 1u);
    return files.empty() ? fs::path() : files[0];
  }

  // What is told of the cache.
  static std::string Told(const Tokenizer& tokenizer) {
    for (const Decision& decision : tokenizer.Describe()) {
      if (decision.what == "packed tokenizer") return decision.value + " | " + decision.source;
    }
    return "";
  }

  // Expects that both are the same, but for what is told of the cache.
  static void ExpectSame(const Tokenizer& found, const Tokenizer& wanted,
                         const std::vector<std::string>& texts = kTexts) {
    std::vector<std::string> told[2];
    for (const auto& [tokenizer, sentences] : {std::pair(&found, 0), std::pair(&wanted, 1)}) {
      for (const Decision& decision : tokenizer->Describe()) {
        if (decision.what == "packed tokenizer") continue;
        told[sentences].push_back(decision.what + ": " + decision.value + " | " + decision.source);
      }
    }
    EXPECT_EQ(told[0], told[1]);
    Tokens a;
    Tokens b;
    for (const std::string& text : texts) {
      for (const bool special : {false, true}) {
        const TokenizeOptions options = {.add_special_tokens = special, .offsets = true};
        ASSERT_TRUE(found.Encode(text, &a, options).ok() && wanted.Encode(text, &b, options).ok());
        EXPECT_EQ(a.ids, b.ids) << text;
        EXPECT_EQ(a.type_ids, b.type_ids) << text;
        EXPECT_EQ(a.offsets, b.offsets) << text;
      }
    }
  }

  TemporaryFolder cache_;
};

// Of each class and kind that there is: all folders and all tokenizers of the fixtures.
TEST_F(PackedTokenizerTest, EveryFolderOpensAsWithout) {
  size_t folders = 0;
  for (const auto& entry : fs::recursive_directory_iterator(ENCORE_TEST_DATA_DIR)) {
    if (entry.path().filename() != "tokenizer.json") continue;
    const std::string folder = entry.path().parent_path().string();
    const Result<Tokenizer> plain = Tokenizer::Open(folder);
    if (!plain.ok()) continue;
    SCOPED_TRACE(folder);
    const Tokenizer built = Cached(folder);
    ExpectSame(built, *plain);
    const Tokenizer read = Cached(folder);
    ExpectSame(read, *plain);
    if (Told(built).empty()) continue;  // of a class that does not read tokenizer.json
    EXPECT_EQ(Told(built), "built and written | option cache");
    EXPECT_EQ(Told(read), "read | option cache");
    ++folders;
  }
  EXPECT_GT(folders, 40u);
}

TEST_F(PackedTokenizerTest, EveryFixtureOpensAsWithout) {
  size_t fixtures = 0;
  const TemporaryFolder folder;
  for (const auto& entry : fs::directory_iterator(ENCORE_TEST_DATA_DIR "/tokenizer")) {
    const json file = json::parse(Contents(entry.path()));
    SCOPED_TRACE(entry.path().filename().string());
    Write(folder.File("tokenizer.json"), file["tokenizer"].dump(fixtures % 2 == 0 ? 2 : -1));
    std::vector<std::string> texts = kTexts;
    for (const json& wanted : file["cases"]) texts.push_back(wanted["text"]);
    const Tokenizer plain = Plain(folder.path().string());
    // One folder: each takes the file of the one before.
    const Tokenizer built = Cached(folder.path().string());
    EXPECT_EQ(Told(built), "built and written | option cache");
    const Tokenizer read = Cached(folder.path().string());
    EXPECT_EQ(Told(read), "read | option cache");
    ExpectSame(read, plain, texts);
    ++fixtures;
  }
  EXPECT_GT(fixtures, 20u);
  EXPECT_FALSE(File().empty());
}

TEST_F(PackedTokenizerTest, AFileThatChangedIsNotUsed) {
  const TemporaryFolder folder;
  const std::string source = ENCORE_TEST_DATA_DIR "/text/base";
  fs::copy(source, folder.File("model"), fs::copy_options::recursive);
  const std::string path = folder.File("model");
  const auto told = [&] { return Told(Cached(path)); };
  EXPECT_EQ(told(), "built and written | option cache");
  EXPECT_EQ(told(), "read | option cache");
  for (const char* const name : {"tokenizer_config.json", "special_tokens_map.json",
                                 "added_tokens.json", "config.json", "tokenizer.json"}) {
    SCOPED_TRACE(name);
    const fs::path file = path + "/" + name;
    json members = fs::exists(file) ? json::parse(Contents(file)) : json::object();
    if (std::string(name) == "tokenizer.json") {
      // As long as before: two tokens change their ids.
      json& vocab = members["model"]["vocab"];
      std::swap(vocab["b"], vocab["c"]);
    }
    Write(file, members.dump(1) + "\n");
    EXPECT_EQ(told(), "built and written | option cache");
    EXPECT_EQ(told(), "read | option cache");
    ExpectSame(Cached(path), Plain(path));
  }
  EXPECT_EQ(Told(Cached(path, /*rebuild=*/true)), "built and written | option cache");
}

TEST_F(PackedTokenizerTest, DamageIsFound) {
  const std::string folder = ENCORE_TEST_DATA_DIR "/text/base";
  const Tokenizer plain = Plain(folder);
  (void)Cached(folder);
  const std::string whole = Contents(File());
  std::vector<std::string> damaged = {"", "x", whole + "x", whole.substr(0, whole.size() - 1)};
  for (size_t place = 0; place < whole.size(); place += 1 + whole.size() / 60) {
    damaged.push_back(whole);
    damaged.back()[place] ^= 1;
    damaged.push_back(whole.substr(0, place));
  }
  for (const std::string& bytes : damaged) {
    Write(File(), bytes);
    const Tokenizer built = Cached(folder);
    ASSERT_EQ(Told(built), "built and written | option cache") << bytes.size();
    ASSERT_EQ(Contents(File()), whole);
  }
  ExpectSame(Cached(folder), plain);
}

// Tables with a checksum that fits: whatever they hold, no search may leave them or never end.
TEST_F(PackedTokenizerTest, StrangeTablesDoNoHarm) {
  std::mt19937_64 random(5);
  for (const char* const name : {"text/base", "sentences/gte", "sentences/qwen3_embedding",
                                 "sentences/sentence_t5", "sentences/embedding_gemma"}) {
    SCOPED_TRACE(name);
    const std::string folder = std::string(ENCORE_TEST_DATA_DIR "/") + name;
    fs::remove_all(cache_.File("cache"));
    (void)Cached(folder);
    const std::string whole = Contents(File());
    size_t used = 0;
    const int rounds = kSanitized ? 40 : 100;
    for (int i = 0; i < rounds; ++i) {
      std::string bytes = whole;
      constexpr size_t kHead = 80;
      for (int change = 0; change < 1 + i % 3; ++change) {
        const size_t place = kHead + random() % (bytes.size() - kHead - 4);
        const uint32_t values[] = {0, 1, 0xFFFFFFFF, static_cast<uint32_t>(random()),
                                   static_cast<uint32_t>(random() % 1024)};
        std::memcpy(&bytes[place & ~size_t{3}], &values[random() % 5], 4);
      }
      uint64_t identity = 0;
      std::memcpy(&identity, &bytes[64], sizeof identity);
      const uint64_t sum = internal::ChecksumOf(std::string_view(bytes).substr(kHead), identity);
      std::memcpy(&bytes[72], &sum, sizeof sum);
      Write(File(), bytes);
      const Result<Tokenizer> found =
          TokenizerFactory::OpenWith({}, folder, {}, {.folder = cache_.File("cache")});
      ASSERT_TRUE(found.ok()) << found.status().message();
      used += Told(*found) == "read | option cache" ? 1 : 0;
      Tokens tokens;
      for (const std::string& text : kTexts) {
        const Status status = found->Encode(text, &tokens, {.offsets = true});
        ASSERT_TRUE(status.ok()) << status.message();
        for (const int32_t id : tokens.ids) ASSERT_LT(id, int32_t{1} << 23);
      }
    }
    EXPECT_GT(used, 0u);  // the tables, not the checksum alone, were tried
    EXPECT_LT(used, static_cast<size_t>(rounds));
  }
}

// Whether the trie takes its bytes with this number, of 32 bits, in place of another.
bool TakesWith(const internal::TableWriter& trie, size_t place, uint32_t number) {
  std::string bytes = trie.bytes();
  std::memcpy(&bytes[place], &number, sizeof number);
  internal::TableReader reader(std::as_bytes(std::span(bytes)));
  return internal::ByteTrie().Take(&reader, 4);
}

TEST(PackedTrieTest, NoSearchLeavesTheNodes) {
  internal::TableWriter trie;
  internal::ByteTrie({{"a", 0}, {"ab", 1}, {"b", 2}, {"cab", 3}}).Put(&trie);
  constexpr size_t kNodes = 2 * sizeof(uint64_t);
  constexpr size_t kNode = 2 * sizeof(uint32_t);
  const auto count = static_cast<uint32_t>((trie.bytes().size() - kNodes) / kNode);
  ASSERT_EQ(count % 256, 0u);
  EXPECT_TRUE(TakesWith(trie, 0, count - 1));
  EXPECT_FALSE(TakesWith(trie, 0, count));
  EXPECT_FALSE(TakesWith(trie, sizeof(uint32_t), 1));
  EXPECT_FALSE(TakesWith(trie, sizeof(uint64_t), count - 1));  // not whole blocks
  for (size_t node = 0; node < count; ++node) {
    EXPECT_TRUE(TakesWith(trie, kNodes + node * kNode, count - 1));
    EXPECT_FALSE(TakesWith(trie, kNodes + node * kNode, count));
    EXPECT_TRUE(TakesWith(trie, kNodes + node * kNode + 4, 4u << 9));  // the value 3
    EXPECT_FALSE(TakesWith(trie, kNodes + node * kNode + 4, 5u << 9));
  }
}

TEST_F(PackedTokenizerTest, WhatCannotBeWrittenIsNoError) {
  const std::string folder = ENCORE_TEST_DATA_DIR "/text/base";
  Write(cache_.File("cache"), "a file in place of a folder");
  const Tokenizer tokenizer = Cached(folder);
  ExpectSame(tokenizer, Plain(folder));
  EXPECT_TRUE(Told(tokenizer).starts_with("built, not written: ")) << Told(tokenizer);
  // Not a regular file: it stays.
  fs::remove(cache_.File("cache"));
  (void)Cached(folder);
  const fs::path file = File();
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_TRUE(Told(Cached(folder)).starts_with("built, not written: "));
  EXPECT_TRUE(fs::is_directory(file));
  // A link is replaced, and what it leads to stays.
  fs::remove(file);
  Write(cache_.File("target"), "mine");
  fs::create_symlink(cache_.File("target"), file);
  EXPECT_EQ(Told(Cached(folder)), "built and written | option cache");
  EXPECT_FALSE(fs::is_symlink(file));
  EXPECT_EQ(Contents(cache_.File("target")), "mine");
}

TEST(WithoutVocabularyTest, OnlyTheModelsTablesAreLeftOut) {
  struct Case {
    const char* json;
    const char* wanted;
  };
  for (const auto& [text, wanted] : {
           Case{R"({"model": {"vocab": {"a": 1, "}\"{": 2}, "merges": [["a", "]"]], "x": 1}})",
                R"({"model": {"vocab": {}, "merges": [], "x": 1}})"},
           Case{R"({"vocab":{"a":1},"model":{"x":{"vocab":{"b":2}},"vocab":[["a",-1.5],["[",0]]}})",
                R"({"vocab":{"a":1},"model":{"x":{"vocab":{"b":2}},"vocab":[]}})"},
           Case{R"({"model":{"type":"vocab","vocab" : { } , "merges" : [ ] },"merges":["a"]})",
                R"({"model":{"type":"vocab","vocab" : {}, "merges" : []},"merges":["a"]})"},
           Case{R"({"a":"model","b":{"vocab":{"c":1}},"model":{"vocab":null,"merges":3}})",
                R"({"a":"model","b":{"vocab":{"c":1}},"model":{"vocab":null,"merges":3}})"},
           Case{R"({"model":{"voc\u0061b":{"a":1},"k\\":"\\","merges":["\\\" ]"]}})",
                R"({"model":{"voc\u0061b":{"a":1},"k\\":"\\","merges":[]}})"},
           Case{"[]", "[]"},
           Case{"3", "3"},
           Case{"", ""},
       }) {
    EXPECT_EQ(WithoutVocabulary(text), wanted);
  }
}

}  // namespace
}  // namespace encore
