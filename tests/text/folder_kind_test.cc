// SPDX-License-Identifier: Apache-2.0
//
// A folder's kind: which modules, tasks and classes fit it. Folders of each kind are opened in the
// other files.

#include "engine/text/folder_kind.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/text/folder_files.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

using internal::FolderKind;
using internal::FolderUse;
using internal::ModuleKind;
using internal::TransformerTask;

class FolderKindTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove(folder_.File("config.json"));
    std::filesystem::remove(folder_.File("config_sentence_transformers.json"));
  }

  Result<FolderKind> Decide(const std::vector<ModuleKind>& modules, TransformerTask task = {},
                            FolderUse use = FolderUse::kTextEncoder) {
    const Result<internal::Folder> folder = internal::Folder::Open(folder_.path());
    std::vector<Decision> decisions;
    internal::ModelFolder found{.folder = *folder};
    for (const ModuleKind kind : modules) found.modules.push_back({.kind = kind, .path = ""});
    found.settings.file = "sentence_bert_config.json";
    found.settings.task = task;
    found.makes_features = makes_features_;
    return internal::DecideKind(found, use, {*folder, false, decisions});
  }

  void Expect(FolderKind kind, const std::vector<ModuleKind>& modules, TransformerTask task = {},
              FolderUse use = FolderUse::kTextEncoder) {
    const FolderKind decided = Taken(Decide(modules, task, use));
    EXPECT_EQ(decided, kind);
  }

  void ExpectRefused(const std::string& words, const std::vector<ModuleKind>& modules,
                     TransformerTask task = {}, FolderUse use = FolderUse::kTextEncoder) {
    EXPECT_TRUE(FailsWith(Decide(modules, task, use), {words}, ErrorCode::kUnsupported));
  }

  TextFolder folder_;
  bool makes_features_ = false;
};

TEST_F(FolderKindTest, TheModulesDecide) {
  using enum ModuleKind;
  Expect(FolderKind::kCheckpoint, {});
  Expect(FolderKind::kTransformer, {kTransformer});
  Expect(FolderKind::kTransformer, {kTransformer}, TransformerTask::kClassify);
  Expect(FolderKind::kDense, {kTransformer, kPooling});
  Expect(FolderKind::kDense,
         {kTransformer, kPooling, kDense, kLayerNorm, kDropout, kNormalize, kQuantize});
  Expect(FolderKind::kStatic, {kStaticEmbedding});
  Expect(FolderKind::kStatic, {kStaticEmbedding, kDense, kNormalize});
  Expect(FolderKind::kSparse, {kMlmTransformer, kSpladePooling}, TransformerTask::kFillMask);
  Expect(FolderKind::kSparseStatic, {kSparseStatic});
  Expect(FolderKind::kLogitScore, {kTransformer, kLogitScore}, TransformerTask::kGenerate);
  Expect(FolderKind::kLate, {kTransformer, kDense, kMultiVectorMask, kNormalize}, {},
         FolderUse::kMultiVectorEncoder);
  makes_features_ = true;
  Expect(FolderKind::kFeatures, {});
  Expect(FolderKind::kFeatures, {kTransformer, kDense, kNormalize});
  Expect(FolderKind::kFeatures, {kClipModel});
}

TEST_F(FolderKindTest, ModulesOfAnotherOrderAreRefused) {
  using enum ModuleKind;
  ExpectRefused("module 0 is out of order", {kPooling});
  ExpectRefused("module 1 is out of order; wanted Transformer and Pooling", {kTransformer, kDense});
  ExpectRefused("module 2 is out of order", {kTransformer, kPooling, kPooling});
  ExpectRefused("module 2 is out of order; wanted Transformer and SpladePooling",
                {kTransformer, kSpladePooling, kNormalize}, TransformerTask::kFillMask);
  ExpectRefused("module 2 is out of order; wanted Transformer and LogitScore",
                {kTransformer, kLogitScore, kNormalize}, TransformerTask::kGenerate);
  ExpectRefused("module 1 is out of order; wanted SparseStaticEmbedding alone",
                {kSparseStatic, kNormalize});
  ExpectRefused("module 1 is out of order; wanted StaticEmbedding", {kStaticEmbedding, kPooling});
  ExpectRefused("module 1 is out of order; wanted Transformer alone", {kTransformer, kPooling},
                TransformerTask::kClassify);
  ExpectRefused("module 2 is out of order; wanted Transformer, then Dense, MultiVectorMask",
                {kTransformer, kMultiVectorMask, kLayerNorm}, {}, FolderUse::kMultiVectorEncoder);
  makes_features_ = true;
  ExpectRefused("module 1 is out of order", {kTransformer, kPooling});
  ExpectRefused("module 1 is out of order", {kTransformer, kQuantize});
}

TEST_F(FolderKindTest, TheTransformersTaskMustFit) {
  using enum ModuleKind;
  ExpectRefused("wanted 'fill-mask' with Transformer and SpladePooling",
                {kTransformer, kSpladePooling});
  ExpectRefused("'fill-mask'; wanted 'feature-extraction' with Transformer and Pooling",
                {kTransformer, kPooling}, TransformerTask::kFillMask);
  ExpectRefused("wanted 'text-generation' with Transformer and LogitScore",
                {kTransformer, kLogitScore});
  ExpectRefused("'text-generation'; wanted 'feature-extraction' with Transformer alone",
                {kTransformer}, TransformerTask::kGenerate);
}

TEST_F(FolderKindTest, EachClassHasItsKinds) {
  using enum ModuleKind;
  const std::vector<ModuleKind> late = {kTransformer, kDense, kMultiVectorMask};
  ExpectRefused("MultiVectorEncoder opens it", late);
  ExpectRefused("TextEncoder opens others", {kTransformer, kPooling}, {},
                FolderUse::kMultiVectorEncoder);
  folder_.WriteJson("config.json", {{"architectures", {"HF_ColBERT"}}});
  ExpectRefused("MultiVectorEncoder opens it", {});
  Expect(FolderKind::kStanford, {}, {}, FolderUse::kMultiVectorEncoder);
  makes_features_ = true;
  ExpectRefused("the model makes a vector of each text", {}, {}, FolderUse::kMultiVectorEncoder);
}

TEST_F(FolderKindTest, ATokenizerAloneIsTheFirstModules) {
  using enum ModuleKind;
  Expect(FolderKind::kDense, {kTransformer, kPooling, kPooling}, {}, FolderUse::kTokenizer);
  Expect(FolderKind::kDense, {kTransformer, kMultiVectorMask}, TransformerTask::kGenerate,
         FolderUse::kTokenizer);
  Expect(FolderKind::kSparseStatic, {kSparseStatic, kPooling}, {}, FolderUse::kTokenizer);
  ExpectRefused("module 0", {kPooling}, {}, FolderUse::kTokenizer);
}

// Only MultiVectorEncoder reads the file, and beside vectors of texts alone.
TEST_F(FolderKindTest, BgeM3ByItsFile) {
  using enum ModuleKind;
  constexpr FolderUse kLate = FolderUse::kMultiVectorEncoder;
  std::ofstream(folder_.File("colbert_linear.pt")) << "not read here";
  Expect(FolderKind::kM3, {}, {}, kLate);
  Expect(FolderKind::kM3, {kTransformer, kPooling, kNormalize}, {}, kLate);
  Expect(FolderKind::kDense, {kTransformer, kPooling, kNormalize});
  ExpectRefused("TextEncoder opens others", {kStaticEmbedding}, {}, kLate);
  ExpectRefused("TextEncoder opens others", {kTransformer, kLogitScore}, TransformerTask::kGenerate,
                kLate);
}

}  // namespace
}  // namespace encore
