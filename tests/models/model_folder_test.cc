// SPDX-License-Identifier: Apache-2.0
//
// Weights of text models that are missing, misshapen, elsewhere or under other names, and tokens
// that a model cannot take.

#include "tests/support/model_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/compare.h"

namespace encore {
namespace {

using internal::TextModel;
using internal::TokenBatch;
using nlohmann::json;

const std::string kIndex = "model.safetensors.index.json";

void ExpectFolderRefused(ModelFolder& folder, ErrorCode code,
                         const std::vector<std::string>& parts) {
  EXPECT_TRUE(FailsWith(folder.Open(), parts, code));
}

constexpr auto kAsItIs = [](SafetensorsEntry&) { return true; };

const std::vector<int32_t> kIds = {3, 119, 0, 7, 7};
const std::vector<size_t> kStarts = {0, 2, 5};

// The input of the encoder for two sequences.
std::vector<float> EmbeddingsOf(const TextModel& model) {
  std::vector<float> x(kIds.size() * model.d_model(), NAN);
  const TokenBatch batch{kIds, {}, kStarts};
  EXPECT_TRUE(model.CheckTokens(batch).ok());
  internal::BatchScratch scratch;
  const MutableView view(x.data(), {kIds.size(), model.d_model()});
  const Status status = model.Embed(batch, view, &scratch, Executor());
  EXPECT_TRUE(status.ok()) << status.message();
  return x;
}

// ---- Which file.

TEST(ModelFolderFiles, WeightsMustBeSafetensors) {
  ModelFolder folder(kModels + "bert");
  folder.Remove("model.safetensors");
  ExpectFolderRefused(folder, ErrorCode::kNotFound, {"no weights", "model.safetensors", kIndex});
  folder.Write("pytorch_model.bin", "x");
  ExpectFolderRefused(folder, ErrorCode::kUnsupported,
                      {"pytorch_model.bin only", "To convert", "python -c"});
  folder.Remove("pytorch_model.bin");
  folder.Write("pytorch_model.bin.index.json", "{}");
  ExpectFolderRefused(folder, ErrorCode::kUnsupported, {"pytorch_model.bin.index.json only"});
}

TEST(ModelFolderFiles, AFileThatIsCutShortIsCorrupt) {
  ModelFolder folder(kModels + "bert");
  const std::string path = folder.File("model.safetensors");
  const auto size = std::filesystem::file_size(path);
  for (const auto left : {size - 1, size / 2, decltype(size){100}, decltype(size){0}}) {
    SCOPED_TRACE(left);
    std::filesystem::resize_file(path, left);
    ExpectFolderRefused(folder, ErrorCode::kCorruptData, {"model.safetensors"});
  }
}

TEST(ModelFolderFiles, ShardsAreFoundByTheirIndexAlone) {
  ModelFolder folder(kModels + "bert_shards");
  const TextModel model = Taken(folder.Open());
  EXPECT_EQ(folder.Decided("weights"), "BF16");
  folder.Remove(kIndex);
  ExpectFolderRefused(folder, ErrorCode::kNotFound, {"no weights"});
}

TEST(ModelFolderFiles, AnIndexAndItsShardsMustFit) {
  const std::string word = "bert.embeddings.word_embeddings.weight";
  const std::string first = "model-00001-of-00003.safetensors";
  const std::string last = "model-00003-of-00003.safetensors";
  const auto folder_with = [&](const json& change) {
    auto folder = std::make_unique<ModelFolder>(kModels + "bert_shards");
    json index = json::parse(std::ifstream(folder->File(kIndex)));
    index.merge_patch(change);
    folder->Write(kIndex, index.dump());
    return folder;
  };
  for (const json& shard :
       {json("../model.safetensors"), json("/etc/model.safetensors"), json("..\\x.safetensors"),
        json(".x.safetensors"), json("a/b.safetensors"), json("c:x.safetensors"),
        json(std::string("x\0.safetensors", 14)), json(""), json("config.json"), json(1),
        json::object(), json::array()}) {
    SCOPED_TRACE(shard.dump());
    // merge_patch of an object would merge.
    const auto folder = folder_with({{"weight_map", {{word, nullptr}}}});
    json index = json::parse(std::ifstream(folder->File(kIndex)));
    index["weight_map"][word] = shard;
    folder->Write(kIndex, index.dump());
    ExpectFolderRefused(*folder, ErrorCode::kCorruptData, {kIndex, word, "in the same folder"});
  }
  ExpectFolderRefused(*folder_with({{"weight_map", {{word, "model-4.safetensors"}}}}),
                      ErrorCode::kNotFound, {"model-4.safetensors", word});
  ExpectFolderRefused(*folder_with({{"weight_map", {{word, last}}}}), ErrorCode::kCorruptData,
                      {kIndex, word, last, "no such tensor"});
  ExpectFolderRefused(*folder_with({{"weight_map", {{"nobody", first}}}}), ErrorCode::kCorruptData,
                      {"nobody", first});
  ExpectFolderRefused(*folder_with({{"weight_map", nullptr}}), ErrorCode::kInvalidArgument,
                      {kIndex, "weight_map is absent"});
  ExpectFolderRefused(*folder_with({{"weight_map", 3}}), ErrorCode::kInvalidArgument,
                      {"weight_map is 3"});
  const auto twice = folder_with({{"weight_map", {{word, "again.safetensors"}}}});
  std::filesystem::copy(twice->File(first), twice->File("again.safetensors"));
  ExpectFolderRefused(*twice, ErrorCode::kCorruptData,
                      {"found in", first, "again.safetensors", "once"});
  const auto none = folder_with({});
  none->Write(kIndex, "{\"weight_map\": {}}");
  ExpectFolderRefused(*none, ErrorCode::kInvalidArgument, {kIndex, "word_embeddings"});
  none->Write(kIndex, "[]");
  ExpectFolderRefused(*none, ErrorCode::kCorruptData, {kIndex});
}

// ---- Which tensors.

TEST(ModelFolderTensors, EveryOneIsNeeded) {
  for (const auto* name : {"bert", "electra_1", "distilbert", "roberta_1"}) {
    ModelFolder whole(kModels + name);
    const SafetensorsFile file = Taken(SafetensorsFile::Open(whole.File("model.safetensors")));
    size_t needed = 0;
    for (const SafetensorsEntry& entry : file.tensors()) {
      if (entry.name.starts_with("pooler.")) continue;
      SCOPED_TRACE(entry.name);
      ModelFolder folder(kModels + name);
      folder.ChangeWeights([&](SafetensorsEntry& e) { return e.name != entry.name; });
      const bool probe = entry.name.ends_with("word_embeddings.weight");
      ExpectFolderRefused(
          folder, ErrorCode::kInvalidArgument,
          {"model.safetensors", probe ? "word_embeddings.weight" : entry.name, "found none"});
      ++needed;
    }
    EXPECT_GE(needed, 36u);
  }
}

TEST(ModelFolderTensors, EachHasItsShape) {
  for (const auto* name : {"bert_old", "electra_1", "distilbert_1"}) {
    ModelFolder whole(kModels + name);
    const SafetensorsFile file = Taken(SafetensorsFile::Open(whole.File("model.safetensors")));
    for (const SafetensorsEntry& entry : file.tensors()) {
      if (entry.dtype == DType::kI64) continue;  // position_ids
      SCOPED_TRACE(entry.name);
      ModelFolder folder(kModels + name);
      folder.ChangeWeights([&](SafetensorsEntry& e) {
        if (e.name != entry.name) return true;
        // As many elements in another order.
        e.shape = e.shape.rank() == 1 ? Shape(1, e.shape[0]) : Shape(e.shape[0] * e.shape[1], 1);
        return true;
      });
      ExpectFolderRefused(
          folder, ErrorCode::kInvalidArgument,
          {"model.safetensors", entry.name, "found shape", "wanted", entry.shape.ToString()});
    }
  }
}

TEST(ModelFolderTensors, SizesOfTheConfigurationAreThoseOfTheTensors) {
  const std::vector<std::pair<std::string, json>> cases = {
      {"hidden_size", 64},         {"vocab_size", 121},
      {"vocab_size", 2147483647},  {"max_position_embeddings", 512},
      {"type_vocab_size", 1},      {"intermediate_size", 38},
      {"num_hidden_layers", 3},    {"num_hidden_layers", 10000},
      {"hidden_size", 2147483644},
  };
  for (const auto& [key, value] : cases) {
    SCOPED_TRACE(key + " = " + value.dump());
    ModelFolder folder(kModels + "bert");
    folder.SetKey(key, value);
    ExpectFolderRefused(folder, ErrorCode::kInvalidArgument, {"model.safetensors", "tensor '"});
  }
}

TEST(ModelFolderTensors, IntegersAreNoWeights) {
  for (const DType type : {DType::kI32, DType::kI8, DType::kBool, DType::kI64}) {
    for (const std::string name :
         {"embeddings.word_embeddings.weight", "encoder.layer.1.attention.self.key.bias",
          "embeddings.LayerNorm.weight"}) {
      SCOPED_TRACE(name);
      ModelFolder folder(kModels + "bert");
      const std::vector<std::byte> zeros(120 * 32 * 8);
      folder.ChangeWeights([&](SafetensorsEntry& e) {
        if (e.name != name) return true;
        e.dtype = type;
        e.bytes = std::span(zeros).first(*e.shape.NumElements() * DTypeSize(type));
        return true;
      });
      ExpectFolderRefused(folder, ErrorCode::kInvalidArgument,
                          {name, "found dtype " + std::string(DTypeName(type)), "wanted F32"});
    }
  }
}

TEST(ModelFolderTensors, NamesMayHaveTheFamilysPrefix) {
  ModelFolder folder(kModels + "bert");
  const TextModel plain = Taken(folder.Open());
  std::string before;
  for (const std::string prefix : {"bert.", "model.", "roberta."}) {
    folder.ChangeWeights([&](SafetensorsEntry& e) {
      e.name = prefix + e.name.substr(before.size());
      return true;
    });
    before = prefix;
    if (prefix == "roberta.") break;
    const TextModel model = Taken(folder.Open());
    EXPECT_TRUE(SameBits(EmbeddingsOf(model), EmbeddingsOf(plain)));
    EXPECT_EQ(folder.Decided("ignored"), "");
  }
  ExpectFolderRefused(folder, ErrorCode::kInvalidArgument,
                      {"embeddings.word_embeddings.weight", "'bert.' or 'model.'"});
}

TEST(ModelFolderTensors, NamesWithAndWithoutAPrefixAreAmbiguous) {
  ModelFolder folder(kModels + "bert");
  const std::vector<float> table(120 * 32);
  folder.ChangeWeights(kAsItIs, {{"bert.embeddings.word_embeddings.weight", DType::kF32,
                                  Shape(120, 32), std::as_bytes(std::span(table))}});
  ExpectFolderRefused(folder, ErrorCode::kInvalidArgument,
                      {"'bert.embeddings.word_embeddings.weight'",
                       "'embeddings.word_embeddings.weight'", "one of them"});
}

// T5's table of words has two names, and files have either or both.
TEST(ModelFolderTensors, AnAliasOfTheTableOfWordsCountsWhereItsNameIsMissing) {
  const std::string alias = "encoder.embed_tokens.weight";
  ModelFolder folder(kModels + "t5");
  const TextModel plain = Taken(folder.Open());
  const std::vector<float> other(120 * 32, 1.0F);
  folder.ChangeWeights(kAsItIs,
                       {{alias, DType::kF32, Shape(120, 32), std::as_bytes(std::span(other))}});
  const TextModel both = Taken(folder.Open());
  for (const float value : EmbeddingsOf(both)) EXPECT_EQ(value, 1.0F) << "the encoder's own table";
  EXPECT_NE(folder.Decided("ignored").find("shared.weight"), std::string::npos);

  ModelFolder renamed(kModels + "t5");
  for (const std::string prefix : {"", "model."}) {
    renamed.ChangeWeights([&](SafetensorsEntry& e) {
      e.name = prefix + (e.name == "shared.weight" ? alias : e.name);
      return true;
    });
    const TextModel model = Taken(renamed.Open());
    EXPECT_TRUE(SameBits(EmbeddingsOf(model), EmbeddingsOf(plain)));
    EXPECT_EQ(renamed.Decided("ignored"), "");
  }
}

TEST(ModelFolderTensors, TensorsOfOtherTasksAreHarmlessAndOthersAreTold) {
  const std::vector<float> values(6);
  const auto with = [&](const std::vector<std::string>& names) {
    ModelFolder folder(kModels + "bert");
    std::vector<SafetensorsEntry> more;
    for (const std::string& name : names) {
      more.push_back({name, DType::kF32, Shape(2, 3), std::as_bytes(std::span(values))});
    }
    folder.ChangeWeights(kAsItIs, more);
    const Result<TextModel> model = folder.Open();
    EXPECT_TRUE(model.ok()) << model.status().message();
    return folder.Decided("ignored");
  };
  EXPECT_EQ(with({"embeddings.position_ids", "cls.predictions.bias", "lm_head.dense.weight",
                  "qa_outputs.weight", "discriminator_predictions.dense.weight"}),
            "");
  EXPECT_EQ(with({"encoder.layer.2.output.dense.weight"}),
            "tensor 'encoder.layer.2.output.dense.weight'");
  EXPECT_EQ(with({"a", "b", "c", "d", "e", "f"}), "tensors 'a', 'b', 'c', 'd' and 2 more");
}

TEST(ModelFolderTensors, MetadataMustNameAPrecision) {
  ModelFolder folder(kModels + "bert");
  const std::string path = folder.File("model.safetensors");
  const SafetensorsFile file = Taken(SafetensorsFile::Open(path));
  ASSERT_TRUE(WriteSafetensors(path, file.tensors(), {{"encore_precision", "int3"}}).ok());
  ExpectFolderRefused(folder, ErrorCode::kInvalidArgument,
                      {"model.safetensors: metadata encore_precision", "'int3'", "bf16 or int8"});
}

TEST(ModelFolderTensors, DataMayStartAtAnyAddress) {
  ModelFolder folder(kModels + "bert");
  const TextModel aligned = Taken(folder.Open());
  // One blank more after the header moves all data by a byte.
  const std::string path = folder.File("model.safetensors");
  std::vector<std::byte> bytes = ReadBytes(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  bytes.insert(bytes.begin() + 8 + static_cast<ptrdiff_t>(length), std::byte{' '});
  ++length;
  std::memcpy(bytes.data(), &length, 8);
  std::filesystem::remove(path);
  WriteBytes(path, bytes);
  const TextModel moved = Taken(folder.Open());
  EXPECT_TRUE(SameBits(EmbeddingsOf(moved), EmbeddingsOf(aligned)));
}

TEST(ModelFolderTensors, AModelOutlivesTheFilesNames) {
  Result<TextModel> model = InvalidArgument("none yet");
  {
    ModelFolder folder(kModels + "bert");
    model = folder.Open();
  }
  ASSERT_TRUE(model.ok()) << model.status().message();
  ModelFolder folder(kModels + "bert");
  const TextModel again = Taken(folder.Open());
  EXPECT_TRUE(SameBits(EmbeddingsOf(*model), EmbeddingsOf(again)));
}

// To read from a mapping whose file was cut short would end the process.
TEST(ModelFolderFiles, AFileThatChangesUnderTheModelIsAnError) {
  internal::BatchScratch scratch;
  ModelFolder folder(kModels + "bert");
  const TextModel model = Taken(folder.Open());
  const std::vector<int32_t> ids = {1, 2};
  const std::vector<size_t> starts = {0, 2};
  std::vector<float> x(2 * model.d_model(), -1);
  const MutableView view(x.data(), Shape(2, model.d_model()));
  const TokenBatch batch{.ids = ids, .type_ids = {}, .seq_starts = starts};
  EXPECT_TRUE(model.Embed(batch, view, &scratch, {}).ok());
  const std::string path = folder.File("model.safetensors");
  const uintmax_t size = std::filesystem::file_size(path);
  std::fill(x.begin(), x.end(), -1.0f);
  std::filesystem::resize_file(path, 4096);
  EXPECT_TRUE(FailsWith(model.Embed(batch, view, &scratch, {}),
                        {"model.safetensors", "was changed since it was opened: found 4096 bytes",
                         "Open the file or its model again;"},
                        ErrorCode::kIo));
  EXPECT_EQ(x, std::vector<float>(x.size(), -1.0f));
  // The bytes are zeros now, and another time of modification tells.
  std::filesystem::resize_file(path, size);
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) - std::chrono::seconds(2));
  EXPECT_TRUE(FailsWith(model.Embed(batch, view, &scratch, {}), {"was changed"}, ErrorCode::kIo));
}

// ---- Tokens.

TEST(ModelTokens, WhatTheTablesHaveNotIsRefused) {
  ModelFolder folder(kModels + "bert");
  const TextModel model = Taken(folder.Open());
  EXPECT_EQ(model.vocab_size(), 120u);
  EXPECT_EQ(model.type_vocab_size(), 2u);
  const auto check = [&](std::vector<int32_t> ids, std::vector<uint8_t> types,
                         std::vector<size_t> starts) {
    return model.CheckTokens({ids, types, starts});
  };
  EXPECT_TRUE(check({0, 119}, {0, 1}, {0, 2}).ok());
  EXPECT_TRUE(check({}, {}, {0}).ok());
  const ErrorCode bad = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(FailsWith(check({1, 2, 120}, {}, {0, 1, 3}),
                        {"sequence 1, token 1", "120", "0 .. 119"}, bad));
  EXPECT_TRUE(FailsWith(check({-1}, {}, {0, 1}), {"sequence 0, token 0", "-1"}, bad));
  EXPECT_TRUE(FailsWith(check({1, 2}, {1, 2}, {0, 2}), {"token 1", "type id 2", "0 .. 1"}, bad));
  EXPECT_TRUE(FailsWith(check({1, 2}, {1}, {0, 2}), {"type_ids has 1"}, bad));
  EXPECT_TRUE(FailsWith(check({1, 2}, {}, {}), {"seq_starts"}, bad));
  EXPECT_TRUE(FailsWith(check({1, 2}, {}, {0, 1}), {"seq_starts"}, bad));
  EXPECT_TRUE(FailsWith(check({1, 2}, {}, {0, 3}), {"seq_starts"}, bad));
  EXPECT_TRUE(FailsWith(check({1, 2}, {}, {1, 2}), {"seq_starts"}, bad));
  EXPECT_TRUE(
      FailsWith(check({1, 2}, {}, {0, 0, 2}), {"seq_starts[1] is 0", "at least one token"}, bad));
  EXPECT_TRUE(FailsWith(check({1, 2}, {}, {0, 3, 2}), {"seq_starts"}, bad));
  EXPECT_TRUE(check(std::vector<int32_t>(160), {}, {0, 160}).ok());
  EXPECT_TRUE(FailsWith(check(std::vector<int32_t>(161), {}, {0, 161}),
                        {"sequence 0 has 161 tokens", "at most 160"}, bad));
}

TEST(ModelTokens, AFamilyWithoutTypesReadsNone) {
  ModelFolder folder(kModels + "distilbert");
  const TextModel model = Taken(folder.Open());
  EXPECT_EQ(model.type_vocab_size(), 0u);
  const std::vector<uint8_t> types = {0, 1, 255};
  const std::vector<int32_t> ids = {1, 2, 3};
  const std::vector<size_t> starts = {0, 3};
  EXPECT_TRUE(model.CheckTokens({ids, types, starts}).ok());
}

TEST(ModelTokens, ALongestSequenceOfRobertaReachesTheLastPosition) {
  internal::BatchScratch scratch;
  ModelFolder folder(kModels + "roberta");
  const TextModel model = Taken(folder.Open());
  ASSERT_EQ(model.max_tokens(), 154u);  // positions 6 .. 159
  const std::vector<int32_t> ids(154, 9);
  const std::vector<size_t> starts = {0, 154};
  ASSERT_TRUE(model.CheckTokens({ids, {}, starts}).ok());
  std::vector<float> x(154 * 32, NAN);
  ASSERT_TRUE(
      model.Embed({ids, {}, starts}, MutableView(x.data(), {154, 32}), &scratch, Executor()).ok());
  EXPECT_TRUE(std::none_of(x.begin(), x.end(), [](float v) { return std::isnan(v); }));
  const std::vector<int32_t> more(155, 9);
  const std::vector<size_t> more_starts = {0, 155};
  EXPECT_FALSE(model.CheckTokens({more, {}, more_starts}).ok());
}

// Gemma scales the rows of its table.
TEST(ModelTokens, NothingIsWrittenBehindARow) {
  internal::BatchScratch scratch;
  ModelFolder folder(kModels + "gemma3");
  const TextModel model = Taken(folder.Open());
  const std::vector<float> plain = EmbeddingsOf(model);
  const size_t width = model.d_model();
  const size_t ld = width + 1;
  std::vector<float> x(kIds.size() * ld, 3.0f);
  const MutableView rows(x.data(), {kIds.size(), width}, {static_cast<ptrdiff_t>(ld), 1});
  ASSERT_TRUE(model.Embed({kIds, {}, kStarts}, rows, &scratch, Executor()).ok());
  for (size_t t = 0; t < kIds.size(); ++t) {
    EXPECT_TRUE(SameBits({x.data() + t * ld, width}, {plain.data() + t * width, width})) << t;
    EXPECT_EQ(x[t * ld + width], 3.0f) << t;
  }
}

// A variance of 1e-12 shows both families' epsilon, which is as much.
TEST(ModelTokens, TheNormHasItsFamilysEpsilon) {
  for (const auto* name : {"bert", "distilbert"}) {
    SCOPED_TRACE(name);
    ModelFolder folder(kModels + name);
    std::vector<float> words(size_t{120} * 32);
    for (size_t i = 0; i < words.size(); ++i) words[i] = i % 2 == 0 ? 1e-6f : -1e-6f;
    const std::vector<float> zeros(size_t{160} * 32);
    const std::vector<float> ones(32, 1.0f);
    folder.ChangeWeights([&](SafetensorsEntry& e) {
      if (e.name.find("embeddings.") == std::string::npos) return true;
      const bool table = e.name.ends_with("word_embeddings.weight");
      const std::vector<float>& values = table                                  ? words
                                         : e.name.ends_with("LayerNorm.weight") ? ones
                                                                                : zeros;
      e.dtype = DType::kF32;
      e.bytes = std::as_bytes(std::span(values)).first(*e.shape.NumElements() * sizeof(float));
      return true;
    });
    const TextModel model = Taken(folder.Open());
    const std::vector<float> x = EmbeddingsOf(model);
    const double wanted = std::sqrt(0.5);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], i % 2 == 0 ? wanted : -wanted, 1e-5);
  }
}

TEST(ModelTokens, ViewsMustHaveTheirShapes) {
  internal::BatchScratch scratch;
  ModelFolder folder(kModels + "bert");
  const TextModel model = Taken(folder.Open());
  const TokenBatch batch{kIds, {}, kStarts};
  std::vector<float> x(5 * 32), y(5 * 32);
  const auto view = [](std::vector<float>& data, size_t rows) {
    return MutableView(data.data(), {rows, 32});
  };
  const ErrorCode bad = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(
      FailsWith(model.Embed(batch, view(x, 4), &scratch, Executor()), {"[4, 32]", "[5, 32]"}, bad));
  EXPECT_TRUE(FailsWith(
      model.Embed(batch, MutableView(x.data(), {32, 5}).Transposed(), &scratch, Executor()),
      {"contiguous"}, bad));
  const Workspace workspace = Taken(model.encoder().MakeWorkspace(Batch{kStarts}));
  for (const OutputRows rows : {OutputRows::kFirst, OutputRows::kLast}) {
    EXPECT_TRUE(model.Forward(batch, rows, view(x, 5), view(y, 2), workspace, &scratch, {}).ok());
    EXPECT_TRUE(
        FailsWith(model.Forward(batch, rows, view(x, 5), view(y, 3), workspace, &scratch, {}),
                  {"[3, 32]", "[2, 32]"}, bad));
  }
  EXPECT_FALSE(model.has_head());
  EXPECT_TRUE(
      FailsWith(model.Logits(view(x, 2), view(y, 2), {}), {"no head"}, ErrorCode::kUnsupported));
}

}  // namespace
}  // namespace encore
