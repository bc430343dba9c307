// SPDX-License-Identifier: Apache-2.0
//
// `encore convert` and `encore calibrate` of model folders: what they make is opened like any
// folder, and gives the vectors of the original in that precision, to the bit.

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "encore/safetensors.h"
#include "encore/text_encoder.h"
#include "tests/cli/cli_runner.h"
#include "tests/support/compare.h"
#include "tests/support/model_folder.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

const std::vector<std::string> kTexts = {"the bread", "",
                                         "these letters and the harbour lie between two hills"};

std::vector<float> Vectors(const std::string& folder, const OpenOptions& options = {}) {
  const TextEncoder model = Taken(TextEncoder::Open(folder, options));
  const auto encoded = Taken(model.Encode(kTexts));
  const auto* data = static_cast<const float*>(encoded.vectors.data());
  return {data, data + encoded.vectors.size_bytes() / sizeof(float)};
}

std::string DecisionOf(const std::string& folder, const std::string& what) {
  const Result<TextEncoder> model = TextEncoder::Open(folder);
  if (!model.ok()) return model.status().message();
  for (const Decision& d : model->Describe()) {
    if (d.what == what) return d.value + " | " + d.source;
  }
  return "";
}

class ConvertFolderTest : public CliTest {
 protected:
  void Encored(const std::vector<std::string>& arguments) {
    const CliResult result = Encore(arguments);
    ASSERT_EQ(result.status, 0) << result.err;
  }
  std::vector<std::string> NamesIn(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      names.push_back(std::filesystem::relative(entry.path(), folder).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string out_ = Path("out");
};

TEST_F(ConvertFolderTest, HasTheBitsOfTheOriginalInItsPrecision) {
  const TextFolder folder;
  folder.WriteModules();
  Encored({"convert", folder.path(), out_, "--precision", "int8"});
  EXPECT_EQ(NamesIn(out_), NamesIn(folder.path()));
  EXPECT_EQ(DecisionOf(out_, "precision"),
            "int8 in the layers, f32 in all else | model.safetensors");
  EXPECT_TRUE(SameBits(Vectors(out_), Vectors(folder.path(), {.precision = Precision::kInt8})));
  EXPECT_FALSE(SameBits(Vectors(out_), Vectors(folder.path())));
  EXPECT_EQ(Vectors(out_, {.precision = Precision::kF32}).size(), Vectors(out_).size());

  const std::string kept = Path("kept");
  Encored({"convert", folder.path(), kept, "--precision", "int8", "--keep", "0.qkv,1.linear2"});
  const std::vector<MatrixOfLayer> keep = {{0, LayerMatrix::kQkv}, {1, LayerMatrix::kLinear2}};
  EXPECT_EQ(DecisionOf(kept, "precision"),
            "int8 in the layers (2 kept in bf16), f32 in all else | model.safetensors");
  EXPECT_TRUE(SameBits(Vectors(kept),
                       Vectors(folder.path(), {.precision = Precision::kInt8, .keep = keep})));

  const std::string bf16 = Path("bf16");
  Encored({"convert", folder.path(), bf16, "--precision", "bf16"});
  EXPECT_EQ(DecisionOf(bf16, "precision"),
            "bf16 in the layers, f32 in all else | model.safetensors");
  EXPECT_TRUE(SameBits(Vectors(bf16), Vectors(folder.path(), {.precision = Precision::kBF16})));
}

// Shards become one file; heads and embeddings stay as they are.
TEST_F(ConvertFolderTest, EveryFamilyAndShards) {
  for (const std::string family :
       {"bert", "bert_shards", "bert_old", "distilbert", "electra_1", "roberta_3", "xlm_roberta_1",
        "mpnet_1", "modernbert_3", "nomic_bert_old", "gte_new_1", "jina_bert", "qwen3", "gemma3",
        "t5", "t5_v1_1", "eurobert"}) {
    SCOPED_TRACE(family);
    const ModelFolder folder(std::string(ENCORE_TEST_DATA_DIR "/models/") + family);
    std::filesystem::remove_all(out_);
    Encored({"convert", folder.File(""), out_, "--precision", "int8"});
    EXPECT_FALSE(std::filesystem::exists(out_ + "/model.safetensors.index.json"));
    std::vector<Decision> decisions;
    const internal::TextModel model =
        Taken(internal::TextModel::Open(*internal::Folder::Open(out_), {}, &decisions));
    EXPECT_EQ(model.encoder().precision(), Precision::kInt8);
  }
}

TEST_F(ConvertFolderTest, Calibrated) {
  const TextFolder folder;
  folder.WriteModules();
  WriteFile(Path("texts"), "the bread\n\nthese letters lie between two hills\n");
  Encored({"calibrate", folder.path(), out_, "--input", Path("texts")});
  EXPECT_EQ(NamesIn(out_), NamesIn(folder.path()));
  EXPECT_EQ(DecisionOf(out_, "precision"), "f32 | default");
  EXPECT_TRUE(SameBits(Vectors(out_), Vectors(folder.path())));
  const std::vector<float> int8 = Vectors(out_, {.precision = Precision::kInt8});
  EXPECT_FALSE(SameBits(int8, Vectors(folder.path(), {.precision = Precision::kInt8})));
  const std::string converted = Path("converted");
  Encored({"convert", out_, converted, "--precision", "int8"});
  EXPECT_TRUE(SameBits(Vectors(converted), int8));
}

TEST_F(ConvertFolderTest, WhatIsRefused) {
  const TextFolder folder;
  folder.WriteModules();
  ExpectRefused({"convert", folder.path(), folder.path(), "--precision", "int8"},
                {"exists already"});
  ExpectRefused({"convert", folder.path(), folder.File("inside"), "--precision", "int8"},
                {"lies in IN"});
  EXPECT_FALSE(std::filesystem::exists(folder.File("inside")));
  Encored({"convert", folder.path(), out_, "--precision", "int8"});
  ExpectRefused({"convert", out_, Path("twice"), "--precision", "bf16"},
                {"has been converted already", "wanted weights of floats"});
  WriteFile(Path("texts"), "");
  ExpectRefused({"calibrate", folder.path(), Path("twice"), "--input", Path("texts")},
                {"no token", "wanted at least one"});
  EXPECT_FALSE(std::filesystem::exists(Path("twice")));
}

// Ended at any moment, it leaves no folder that opens and computes something else: nothing is at
// OUT, or all of it. Other signals leave nothing beside it either; and what SIGKILL leaves is
// removed by the next run.
TEST_F(ConvertFolderTest, EndedByASignal) {
  const TextFolder folder;
  folder.WriteModules();
  // Copied before or after modules.json, as the file system lists them.
  for (const std::string name : {"a", "m", "x", "zz"}) {
    folder.Write(name, std::string(2 << 20, 'x'));
  }
  const std::vector<std::string> all = NamesIn(folder.path());
  const auto run_until = [&](const std::vector<std::string>& arguments, int signal,
                             std::chrono::microseconds after) {
    std::vector<char*> argv = {const_cast<char*>(ENCORE_CLI_PATH)};
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      execv(argv[0], argv.data());
      _exit(127);
    }
    std::this_thread::sleep_for(after);
    kill(child, signal);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  };
  WriteFile(Path("texts"), "the bread\n");
  const std::vector<std::vector<std::string>> commands = {
      {"convert", folder.path(), out_, "--precision", "int8"},
      {"calibrate", folder.path(), out_, "--input", Path("texts")}};
  constexpr int kMoments = 16;
  size_t ended = 0, temporary = 0;
  for (const std::vector<std::string>& command : commands) {
    const auto start = std::chrono::steady_clock::now();
    Encored(command);
    const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - start);
    EXPECT_EQ(NamesIn(out_), all);
    std::filesystem::remove_all(out_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGKILL}) {
      for (int moment = 0; moment < kMoments; ++moment) {
        const int by = run_until(command, signal, whole * moment / kMoments);
        ended += by == signal ? 1 : 0;
        if (std::filesystem::exists(out_)) {
          ASSERT_EQ(NamesIn(out_), all) << command[0] << ", signal " << signal << ", " << moment;
          std::filesystem::remove_all(out_);
        }
        for (const std::string& name : Files()) {
          if (!name.ends_with(".tmp")) continue;
          EXPECT_EQ(signal, SIGKILL) << name;
          ++temporary;
        }
      }
    }
    Encored(command);
    EXPECT_EQ(NamesIn(out_), all);
    for (const std::string& name : Files()) EXPECT_FALSE(name.ends_with(".tmp")) << name;
    std::filesystem::remove_all(out_);
  }
  EXPECT_GT(ended, 0u);
  std::cout << ended << " runs ended by a signal, " << temporary << " left a temporary folder\n";
}

// Of a converted folder: a scale that is missing, or none that can be used.
TEST_F(ConvertFolderTest, BadScales) {
  const TextFolder folder;
  folder.WriteModules();
  Encored({"convert", folder.path(), out_, "--precision", "int8"});
  const ModelFolder converted(out_);
  const std::string scale = "attention.self.query.weight_scale";
  const auto opens = [&] {
    std::vector<Decision> decisions;
    const auto model =
        internal::TextModel::Open(*internal::Folder::Open(converted.File("")), {}, &decisions);
    return model.ok() ? "" : model.status().message();
  };
  EXPECT_EQ(opens(), "");
  std::vector<float> zeros(32);
  converted.ChangeWeights([&](SafetensorsEntry& entry) {
    if (entry.name.ends_with("0." + scale)) entry.bytes = std::as_bytes(std::span(zeros));
    return true;
  });
  EXPECT_NE(opens().find("q_proj.weight_scale[0] is 0; wanted a finite, normal f32 number above 0"),
            std::string::npos)
      << opens();
  converted.ChangeWeights(
      [&](const SafetensorsEntry& entry) { return !entry.name.ends_with("0." + scale); });
  EXPECT_NE(opens().find(scale + "': found none; wanted [32]"), std::string::npos) << opens();
}

}  // namespace
}  // namespace encore
