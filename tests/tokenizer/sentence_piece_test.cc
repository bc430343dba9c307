// SPDX-License-Identifier: Apache-2.0
//
// spm.model: DeBERTa's tokenizer without a tokenizer.json; spiece.model: SigLIP's, as sentencepiece
// computes it; and files that are none.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "encore/tokenizer.h"
#include "engine/tokenizer/tokenizer_json.h"
#include "gtest/gtest.h"
#include "tests/support/safetensors_bytes.h"

namespace encore {
namespace {

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(0x80 | (value & 0x7F)));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}
// A field of a message: a number, or a string or message.
std::string Number(uint64_t field, uint64_t value) { return Varint(field << 3) + Varint(value); }
std::string FieldBytes(uint64_t field, std::string_view bytes) {
  return Varint(field << 3 | 2) + Varint(bytes.size()) + std::string(bytes);
}

std::string Piece(std::string_view text, float score, uint64_t type = 1) {
  std::string bytes = FieldBytes(1, text) + Varint(2 << 3 | 5) + std::string(4, '\0');
  std::memcpy(bytes.data() + bytes.size() - 4, &score, 4);  // of a little-endian machine
  return FieldBytes(1, type == 1 ? bytes : bytes + Number(3, type));
}

// Pieces in DeBERTa's order; the trainer's settings, with fields that nobody reads; a normalizer.
std::string GoodModel() {
  return Piece("[PAD]", 0, 3) + Piece("[CLS]", 0, 3) + Piece("[SEP]", 0, 3) + Piece("[UNK]", 0, 2) +
         Piece("▁", -2.5f) + Piece("▁tea", -1) + Piece("t", -3) + Piece("<user>", 0, 4) +
         Piece("s", -3.5f) +
         FieldBytes(2, Number(3, 1) + FieldBytes(1, "corpus.txt") + Number(40, 3)) +
         FieldBytes(3, FieldBytes(1, "nmt_nfkc"));
}

Result<Tokenizer> OpenModel(const std::string& model, const std::string& config = "{}") {
  const TemporaryFolder folder;
  std::ofstream(folder.File("spm.model"), std::ios::binary) << model;
  std::ofstream(folder.File("config.json")) << R"({"model_type": "deberta-v2"})";
  std::ofstream(folder.File("tokenizer_config.json")) << config;
  const std::string file = folder.File("spm.model");
  return Tokenizer::Open(file.substr(0, file.rfind('/')));
}

std::vector<int32_t> IdsOf(const Result<Tokenizer>& tokenizer, std::string_view text) {
  if (!tokenizer.ok()) {
    ADD_FAILURE() << tokenizer.status().message();
    return {};
  }
  Tokens tokens;
  const Status status = tokenizer->Encode(text, &tokens);
  EXPECT_TRUE(status.ok()) << status.message();
  return tokens.ids;
}

// As transformers 5.23 has it: [MASK] comes behind the pieces, and the user's symbols are tokens.
TEST(SentencePiece, MakesDebertasTokenizer) {
  const Result<Tokenizer> tokenizer = OpenModel(GoodModel());
  EXPECT_EQ(IdsOf(tokenizer, "tea"), (std::vector<int32_t>{1, 5, 2}));
  EXPECT_EQ(IdsOf(tokenizer, "teas  tea\n"), (std::vector<int32_t>{1, 5, 8, 5, 2}));
  EXPECT_EQ(IdsOf(tokenizer, "tea x"), (std::vector<int32_t>{1, 5, 4, 3, 2}));
  EXPECT_EQ(IdsOf(tokenizer, "[MASK]<user>"), (std::vector<int32_t>{1, 9, 7, 2}));
  EXPECT_EQ(IdsOf(OpenModel(GoodModel(), R"({"do_lower_case": true})"), "TEA"),
            (std::vector<int32_t>{1, 5, 2}));
}

TEST(SentencePiece, FilesThatAreNone) {
  const std::string good = GoodModel();
  for (size_t size = 0; size < good.size(); ++size) {  // some ends are whole messages
    const Result<Tokenizer> cut = OpenModel(good.substr(0, size));
    if (cut.ok()) continue;
    const std::string& message = cut.status().message();
    EXPECT_TRUE(message.find("spm.model") != std::string::npos ||
                message.find("'[CLS]' of DebertaV2Tokenizer") != std::string::npos ||
                message.find("'[SEP]' of DebertaV2Tokenizer") != std::string::npos)
        << message;
  }
  const struct {
    std::string bytes;
    const char* sentence;
  } cases[] = {
      {"", "spm.model: there are no pieces"},
      {"{\"model\": {}}", "spm.model: the file breaks off, or is another one"},
      {Piece("\xFF", 0), "spm.model: piece 0 cannot be read"},
      {FieldBytes(1, FieldBytes(1, "a") + "\x0A\xFF"), "spm.model: piece 0 cannot be read"},
      {good + FieldBytes(2, Number(3, 2)),
       "spm.model: model_type is 2; encore reads 1, UNIGRAM, only"},
      {good + FieldBytes(2, "\x03"), "spm.model: trainer_spec cannot be read"},
      {good + std::string(11, '\xFF'), "spm.model: the file breaks off"},
  };
  for (const auto& [bytes, sentence] : cases) {
    EXPECT_TRUE(FailsWith(OpenModel(bytes), {sentence}, kAnyCode));
  }
}

// ---- SigLIP's: </s> is 0, <unk> 1.

std::string SiglipModel(const std::string& normalizer = "", const std::string& more = "") {
  return Piece("</s>", 0, 3) + Piece("<unk>", 0, 2) + Piece("▁", -2) + Piece("▁tea", -1) +
         Piece("t", -3) + Piece("e", -3) + Piece("a", -3) + Piece("s", -3.5f) + Piece("<", -4) +
         Piece("unk", -4) + Piece(">", -4) + more + FieldBytes(2, Number(3, 1) + Number(40, 1)) +
         FieldBytes(3, normalizer);
}

Result<Tokenizer> OpenSiglip(const std::string& model, const std::string& config = "{}") {
  const TemporaryFolder folder;
  std::ofstream(folder.File("spiece.model"), std::ios::binary) << model;
  std::ofstream(folder.File("config.json")) << R"({"model_type": "siglip"})";
  std::ofstream(folder.File("tokenizer.json")) << "nobody reads it";
  std::ofstream(folder.File("tokenizer_config.json")) << config;
  const std::string file = folder.File("spiece.model");
  return Tokenizer::Open(file.substr(0, file.rfind('/')));
}

using Ids = std::vector<int32_t>;

// The ids are those of transformers 5.23's SiglipTokenizer.
TEST(SentencePiece, MakesSiglipsTokenizer) {
  const Result<Tokenizer> tokenizer = OpenSiglip(SiglipModel());
  EXPECT_EQ(IdsOf(tokenizer, "tea"), (Ids{3, 0}));
  EXPECT_EQ(IdsOf(tokenizer, ""), (Ids{0}));
  EXPECT_EQ(IdsOf(tokenizer, "  "), (Ids{0}));
  // Lower case, no punctuation, single spaces; the first stays behind the mark in front.
  EXPECT_EQ(IdsOf(tokenizer, "T!E?A"), (Ids{3, 0}));
  EXPECT_EQ(IdsOf(tokenizer, "tea \x1c\t (teas)"), (Ids{3, 3, 7, 0}));
  EXPECT_EQ(IdsOf(tokenizer, " tea"), (Ids{2, 3, 0}));
  EXPECT_EQ(IdsOf(tokenizer, "t▁ea"), (Ids{2, 4, 2, 5, 6, 0}));
  // Unknown characters in a row are one.
  EXPECT_EQ(IdsOf(tokenizer, "txyzt"), (Ids{2, 4, 1, 4, 0}));
  // The end is no second one, and takes the spaces beside it.
  EXPECT_EQ(IdsOf(tokenizer, "tea </s>"), (Ids{3, 0}));
  EXPECT_EQ(IdsOf(tokenizer, "</s> tea"), (Ids{0, 4, 5, 6, 0}));
  // Cutting leaves room for it before the template looks at what is left.
  const auto cut = [&](const std::string& text, size_t max_length) {
    Tokens tokens;
    EXPECT_TRUE(tokenizer->Encode(text, &tokens, {.max_length = max_length}).ok());
    return std::make_pair(tokens.ids, tokens.cut);
  };
  EXPECT_EQ(cut("tea </s>", 3), std::make_pair(Ids{3, 0}, size_t{0}));
  EXPECT_EQ(cut("tea </s>", 2), std::make_pair(Ids{3, 0}, size_t{1}));
  EXPECT_EQ(cut("tea </s> tea", 3), std::make_pair(Ids{3, 0}, size_t{3}));
  EXPECT_EQ(IdsOf(OpenSiglip(SiglipModel(), R"({"do_lower_case": false})"), "TEA"), (Ids{2, 1, 0}));

  // Special tokens are found in the raw text, whatever their flags.
  const Result<Tokenizer> flagged = OpenSiglip(SiglipModel(), R"({"added_tokens_decoder": {"0": {
      "content": "</s>", "lstrip": true, "normalized": true, "rstrip": true,
      "single_word": false, "special": true}}})");
  EXPECT_EQ(IdsOf(flagged, "teas </s>"), (Ids{3, 7, 0}));

  Tokens tokens;
  ASSERT_TRUE(tokenizer->Encode("tea tea", &tokens, {.offsets = true}).ok());
  ASSERT_EQ(tokens.offsets.size(), 3u);
  EXPECT_EQ(tokens.offsets[0].end, 3u);
  EXPECT_EQ(tokens.offsets[1].begin, 3u);
  EXPECT_EQ(tokens.offsets[1].end, 7u);
}

TEST(SentencePiece, WhatSentencePieceHasBesideIsRefused) {
  const struct {
    std::string bytes;
    const char* sentence;
  } cases[] = {
      {SiglipModel(Number(4, 0)), "remove_extra_whitespaces is false; encore computes true only"},
      {SiglipModel(Number(5, 0)), "escape_whitespaces is false"},
      {SiglipModel("") + FieldBytes(2, Number(24, 1)), "treat_whitespace_as_suffix is true"},
      {SiglipModel("") + FieldBytes(2, Number(35, 1)), "byte_fallback is true"},
      {SiglipModel("") + FieldBytes(2, Number(40, 3)), "unk_id is 3; wanted an unknown piece"},
      {SiglipModel("") + FieldBytes(2, Number(40, uint64_t{1} << 40)), "wanted an unknown piece"},
      {SiglipModel("", Piece("x", 0, 4)), "piece 11, 'x', has type 4; encore computes 1"},
      {SiglipModel("", Piece("<0x0A>", 0, 6)), "has type 6"},
      {SiglipModel("", Piece("", 0)), "is empty; wanted a text"},
      {SiglipModel("", Piece("tea", NAN)), "no finite number"},
      {SiglipModel("", Piece("t", -1)), "spiece.model"},
      {SiglipModel("", Piece(std::string(5000, 'x'), -1)), "has 5000 bytes; wanted at most 4096"},
      {SiglipModel(FieldBytes(2, "abc")), "precompiled_charsmap has 3 bytes"},
      {SiglipModel("") + FieldBytes(3, "\x03"), "normalizer_spec cannot be read"},
  };
  for (const auto& [bytes, sentence] : cases) {
    EXPECT_TRUE(FailsWith(OpenSiglip(bytes), {sentence}, kAnyCode));
  }
  const struct {
    const char* config;
    const char* sentence;
  } tokens[] = {
      {R"({"added_tokens_decoder": {"4": {"content": "t", "lstrip": false, "normalized": false,
          "rstrip": false, "single_word": true, "special": false}}})",
       "the token 't' has single_word true; wanted false"},
      {R"({"added_tokens_decoder": {"5": {"content": "t", "lstrip": false, "normalized": false,
          "rstrip": false, "single_word": false, "special": false}}})",
       "the token 't' has id 5; wanted the model's, 4"},
      {R"({"pad_token": "<pad>"})", "the token '<pad>' is no piece of spiece.model"},
      {R"({"additional_special_tokens": ["\u2581tea"]})", "has U+2581, which is a space"},
  };
  for (const auto& [config, sentence] : tokens) {
    EXPECT_TRUE(FailsWith(OpenSiglip(SiglipModel(), config), {sentence}, kAnyCode));
  }
  const std::string good = SiglipModel();
  for (size_t size = 0; size < good.size(); ++size) {
    const Result<Tokenizer> cut = OpenSiglip(good.substr(0, size));
    if (cut.ok()) continue;
    EXPECT_FALSE(cut.status().message().empty());
  }
  const TemporaryFolder empty;
  std::ofstream(empty.File("tokenizer_config.json")) << R"({"tokenizer_class": "SiglipTokenizer"})";
  std::ofstream(empty.File("tokenizer.json")) << "{}";
  const std::string file = empty.File("tokenizer.json");
  EXPECT_TRUE(FailsWith(Tokenizer::Open(file.substr(0, file.rfind('/'))),
                        {"there is no spiece.model"}, kAnyCode));
}

}  // namespace
}  // namespace encore
