// SPDX-License-Identifier: Apache-2.0
//
// Adapters for tasks (OpenOptions::task), from a bank in the model's file and from PEFT's folders:
// hidden states against transformers in float64 with the adapters merged, and what is refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "encore/safetensors.h"
#include "engine/models/text_model.h"
#include "nlohmann/json.hpp"
#include "tests/support/compare.h"
#include "tests/support/model_folder.h"
#include "tests/support/safetensors_bytes.h"

namespace encore {
namespace {

namespace fs = std::filesystem;
using internal::Folder;
using internal::TextModel;
using nlohmann::json;

constexpr double kAdapterTolerance = 1e-6;  // of the largest magnitude, as all families'

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const std::string& name) {
  const Result<Tensor> tensor = file.Read(name);
  EXPECT_TRUE(tensor.ok()) << name;
  if (!tensor.ok()) return {};
  const auto* data = static_cast<const T*>(tensor->data());
  return {data, data + tensor->size_bytes() / sizeof(T)};
}

struct Opened {
  Result<TextModel> model = Status(ErrorCode::kNotFound, "not opened");
  std::vector<Decision> decisions;

  std::string Decided(const std::string& what) const {
    for (const Decision& decision : decisions) {
      if (decision.what == what) return decision.value;
    }
    return "";
  }
};

Opened Open(const std::string& path, const std::string& task) {
  Opened opened;
  const Result<Folder> folder = Folder::Open(path);
  EXPECT_TRUE(folder.ok()) << path;
  if (folder.ok()) opened.model = TextModel::Open(*folder, {.task = task}, &opened.decisions);
  return opened;
}

// The last hidden states of the tokens in tasks.safetensors.
std::vector<float> States(const TextModel& model, const SafetensorsFile& expected) {
  const auto ids = Values<int32_t>(expected, "ids");
  const auto starts64 = Values<int64_t>(expected, "seq_starts");
  const std::vector<size_t> starts(starts64.begin(), starts64.end());
  const internal::TokenBatch batch{.ids = ids, .type_ids = {}, .seq_starts = starts};
  std::vector<float> x(ids.size() * model.d_model(), NAN);
  const MutableView view(x.data(), {ids.size(), model.d_model()});
  EXPECT_TRUE(model.CheckTokens(batch).ok());
  internal::BatchScratch scratch;
  EXPECT_TRUE(model.Embed(batch, view, &scratch, {}).ok());
  const Result<Workspace> workspace =
      model.encoder().MakeWorkspace(Batch{.seq_starts = starts}, {});
  EXPECT_TRUE(workspace.ok());
  EXPECT_TRUE(model.Forward(batch, OutputRows::kAll, view, view, *workspace, &scratch, {}).ok());
  return x;
}

class TaskAdapters : public testing::TestWithParam<const char*> {
 protected:
  std::string path_ = kModels + GetParam();
};

TEST_P(TaskAdapters, GiveWhatTransformersGivesOfMergedWeights) {
  const SafetensorsFile expected = Taken(SafetensorsFile::Open(path_ + "/tasks.safetensors"));
  const Opened plain = Open(path_, "");
  ASSERT_TRUE(plain.model.ok()) << plain.model.status().message();
  const std::vector<float> without = States(*plain.model, expected);
  size_t tasks = 0;
  double worst = 0;
  for (const SafetensorsEntry& entry : expected.tensors()) {
    if (entry.name == "ids" || entry.name == "seq_starts") continue;
    SCOPED_TRACE(entry.name);
    ++tasks;
    EXPECT_NE(plain.Decided("task").find("'" + entry.name + "'"), std::string::npos);
    const Opened opened = Open(path_, entry.name);
    ASSERT_TRUE(opened.model.ok()) << opened.model.status().message();
    EXPECT_EQ(opened.Decided("task"), entry.name + ", by its adapter");
    EXPECT_EQ(opened.Decided("ignored"), "");
    const std::vector<float> found = States(*opened.model, expected);
    const auto wanted = Values<double>(expected, entry.name);
    double largest = 0;
    for (const double value : wanted) largest = std::max(largest, std::fabs(value));
    EXPECT_TRUE(Near(found, wanted, kAdapterTolerance * largest, &worst));
    EXPECT_FALSE(SameBits(found, without));
    // A folder's spelling is as good.
    std::string name = entry.name;
    std::replace(name.begin(), name.end(), '.', '_');
    std::replace(name.begin(), name.end(), '-', '_');
    const Opened same = Open(path_, name);
    ASSERT_TRUE(same.model.ok()) << same.model.status().message();
    EXPECT_TRUE(SameBits(States(*same.model, expected), found));
  }
  EXPECT_GE(tasks, 2u);
  std::printf("%-16s largest difference %.1e of the largest magnitude\n", GetParam(),
              worst * kAdapterTolerance);
}

TEST_P(TaskAdapters, OtherTasksAreRefusedWithTheirList) {
  for (const auto* task : {"retrieval", "query", "text-matching ", "nli"}) {
    const Opened opened = Open(path_, task);
    ASSERT_FALSE(opened.model.ok());
    EXPECT_EQ(opened.model.status().code(), ErrorCode::kInvalidArgument);
    const std::string message(opened.model.status().message());
    for (const std::string& word :
         {std::string(task), std::string("'retrieval.query'"), std::string("'text-matching'")}) {
      EXPECT_NE(message.find(word), std::string::npos) << message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TaskAdapters, testing::Values("jina_v3_bank", "jina_v3_folders"),
                         [](const auto& test) { return std::string(test.param); });

TEST(TaskAdapter, ModelsWithoutOneHaveNoTasks) {
  for (const auto* name : {"bert", "jina_v3"}) {
    const Opened opened = Open(kModels + name, "retrieval.query");
    EXPECT_TRUE(FailsWith(opened.model, {"has no adapters"}, kAnyCode));
    EXPECT_EQ(Open(kModels + name, "").Decided("task"), "");
  }
}

// A copy of the folder with PEFT's settings changed.
TEST(TaskAdapter, SettingsThatComputeSomethingElseAreRefused) {
  const std::vector<std::pair<std::string, json>> changes = {
      {"use_dora", true},
      {"bias", "all"},
      {"peft_type", "LOHA"},
      {"rank_pattern", {{"q_proj", 8}}},
      {"r", 4},
      {"modules_to_save", {"pooler"}},
      {"r", 0},
      {"fan_in_fan_out", true},
  };
  for (const auto& [key, value] : changes) {
    SCOPED_TRACE(key);
    const TemporaryFolder copy;
    fs::copy(kModels + "jina_v3_folders", copy.File("model"), fs::copy_options::recursive);
    const std::string file = copy.File("model/retrieval_query/adapter_config.json");
    json settings = json::parse(std::ifstream(file));
    settings[key] = value;
    std::ofstream(file) << settings;
    const Opened opened = Open(copy.File("model"), "retrieval.query");
    ASSERT_FALSE(opened.model.ok());
    const std::string message(opened.model.status().message());
    EXPECT_NE(message.find("retrieval_query/"), std::string::npos) << message;
    EXPECT_TRUE(Open(copy.File("model"), "text-matching").model.ok());
  }
}

TEST(TaskAdapter, ATensorThatNobodyAsksForIsRefused) {
  const TemporaryFolder copy;
  fs::copy(kModels + "jina_v3_folders", copy.File("model"), fs::copy_options::recursive);
  const std::string path = copy.File("model/retrieval_query/adapter_model.safetensors");
  const SafetensorsFile file = Taken(SafetensorsFile::Open(path, FileMemory::kCopied));
  std::vector<SafetensorsEntry> entries = file.tensors();
  for (SafetensorsEntry& entry : entries) {
    if (entry.name.ends_with("layers.1.mlp.fc1.lora_A.weight")) {
      entry.name = "base_model.model.layers.1.mlp.fc3.lora_A.weight";
    }
  }
  ASSERT_TRUE(WriteSafetensors(path, entries).ok());
  const Opened opened = Open(copy.File("model"), "retrieval.query");
  EXPECT_TRUE(FailsWith(opened.model, {"fc1.lora_A"}, kAnyCode));
}

}  // namespace
}  // namespace encore
