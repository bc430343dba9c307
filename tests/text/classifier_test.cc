// SPDX-License-Identifier: Apache-2.0
//
// What follows the logits of a classifier: by config.json's problem_type, as transformers' pipeline
// "text-classification", and by the option, whatever the folder says.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "encore/text_encoder.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

using nlohmann::json;
using Row = std::vector<double>;

const std::vector<std::string> kClassified = {"The harbour lies between two hills.", "tea", ""};

Row IdentityOf(const Row& logits) { return logits; }
Row SigmoidsOf(const Row& logits) {
  Row row;
  for (const double x : logits) row.push_back(1 / (1 + std::exp(-x)));
  return row;
}
Row SoftmaxOf(const Row& logits) {
  Row row;
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  for (const double x : logits) row.push_back(std::exp(x) / sum);
  return row;
}

Result<TextEncoder> OpenWith(const std::string& base, const json& members) {
  const TextFolder folder(base);
  folder.PatchJson("config.json", members);
  return TextEncoder::Open(folder.path(), {.weights = FileMemory::kCopied});
}

std::vector<Row> RowsOf(const Result<Predictions>& found) {
  EXPECT_TRUE(found.ok()) << found.status().message();
  std::vector<Row> rows;
  if (!found.ok()) return rows;
  const ConstView values = found->values.View<float>();
  for (size_t i = 0; i < values.dim(0); ++i) {
    rows.emplace_back(&values(i, 0), &values(i, 0) + values.dim(1));
  }
  return rows;
}

void ExpectAfterLogits(const TextEncoder& model, std::optional<ScoreActivation> activation,
                       const std::function<Row(const Row&)>& formula) {
  const std::vector<Row> logits =
      RowsOf(model.Classify(kClassified, {.activation = ScoreActivation::kIdentity}));
  const std::vector<Row> found = RowsOf(model.Classify(kClassified, {.activation = activation}));
  ASSERT_EQ(found.size(), kClassified.size());
  ASSERT_EQ(logits.size(), kClassified.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const Row wanted = formula(logits[i]);
    ASSERT_EQ(found[i].size(), wanted.size());
    for (size_t l = 0; l < wanted.size(); ++l) EXPECT_NEAR(found[i][l], wanted[l], 1e-6);
  }
}

// The value of Describe().
std::string ClassesOf(const TextEncoder& model) {
  for (const Decision& decision : model.Describe()) {
    if (decision.what == "classes") return decision.value + " | " + decision.source;
  }
  return "";
}

struct ProblemCase {
  const char* base;
  json problem_type;
  Row (*formula)(const Row&);
  const char* described;
};

const ProblemCase kProblemCases[] = {
    {"classifier", nullptr, SoftmaxOf, "softmax | default for several labels"},
    {"classifier", "single_label_classification", SoftmaxOf, "softmax | config.json: problem_type"},
    {"classifier", "multi_label_classification", SigmoidsOf, "sigmoid | config.json: problem_type"},
    {"classifier", "regression", IdentityOf, "identity | config.json: problem_type"},
    {"reranker", nullptr, SigmoidsOf, "sigmoid | default for one label"},
    {"reranker", "multi_label_classification", SigmoidsOf, "sigmoid | config.json: problem_type"},
    {"reranker", "regression", IdentityOf, "identity | config.json: problem_type"},
};

TEST(Classifier, TheProblemTypeDecides) {
  for (const ProblemCase& c : kProblemCases) {
    SCOPED_TRACE(std::string(c.base) + " " + c.problem_type.dump());
    const TextEncoder model = Taken(OpenWith(c.base, {{"problem_type", c.problem_type}}));
    ExpectAfterLogits(model, {}, c.formula);
    ExpectAfterLogits(model, ScoreActivation::kAsClassifier, c.formula);
    EXPECT_EQ(ClassesOf(model), c.described);
    // Pairs and ids are as texts.
    const std::vector<std::vector<int32_t>> ids = {{2, 7, 9, 3}};
    const std::vector<Row> logits =
        RowsOf(model.ClassifyIds(ids, {}, {.activation = ScoreActivation::kIdentity}));
    const std::vector<Row> found = RowsOf(model.ClassifyIds(ids));
    ASSERT_EQ(found.size(), 1u);
    for (size_t l = 0; l < found[0].size(); ++l) {
      EXPECT_NEAR(found[0][l], c.formula(logits[0])[l], 1e-6);
    }
  }
}

TEST(Classifier, TheOptionCountsBeforeTheFolder) {
  for (const ProblemCase& c : kProblemCases) {
    SCOPED_TRACE(std::string(c.base) + " " + c.problem_type.dump());
    const TextEncoder model = Taken(OpenWith(c.base, {{"problem_type", c.problem_type}}));
    ExpectAfterLogits(model, ScoreActivation::kIdentity, IdentityOf);
    ExpectAfterLogits(model, ScoreActivation::kSigmoid, SigmoidsOf);
    ExpectAfterLogits(model, ScoreActivation::kSoftmax, SoftmaxOf);
    const bool one = model.labels().size() == 1;
    ExpectAfterLogits(model, ScoreActivation::kAsCrossEncoder, one ? SigmoidsOf : IdentityOf);
    EXPECT_TRUE(
        FailsWith(model.Classify(kClassified, {.activation = static_cast<ScoreActivation>(9)}),
                  {"number 9"}));
  }
}

// Scores are CrossEncoder's: its activation_fn counts, problem_type does not; and the other way
// round for classes.
TEST(Classifier, ScoresDoNotReadTheProblemType) {
  const auto score = [](const json& members) {
    const Result<TextEncoder> model = OpenWith("reranker", members);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? (*model->Score("who?", kClassified)).values : std::vector<float>();
  };
  const std::vector<float> plain = score(json::object());
  ASSERT_EQ(plain.size(), kClassified.size());
  for (const char* type : {"regression", "multi_label_classification"}) {
    EXPECT_EQ(score({{"problem_type", type}}), plain);
  }
  const json identity = {{"activation_fn", "torch.nn.modules.linear.Identity"}};
  EXPECT_NE(score({{"sentence_transformers", identity}}), plain);
  const TextEncoder model = Taken(OpenWith("reranker", {{"sentence_transformers", identity}}));
  ExpectAfterLogits(model, {}, SigmoidsOf);
}

// An unknown problem_type matters where it would decide, and nowhere else.
TEST(Classifier, RefusesOtherProblemTypes) {
  const auto refused = [](const char* base, const json& type, const std::string& words) {
    const TextEncoder model = Taken(OpenWith(base, {{"problem_type", type}}));
    EXPECT_TRUE(FailsWith(model.Classify(kClassified), {"config.json: problem_type is ", words}));
    EXPECT_TRUE(ClassesOf(model).starts_with("only with an activation of the caller's"));
    ExpectAfterLogits(model, ScoreActivation::kSigmoid, SigmoidsOf);
    const bool one = model.labels().size() == 1;
    ExpectAfterLogits(model, ScoreActivation::kAsCrossEncoder, one ? SigmoidsOf : IdentityOf);
  };
  for (const char* base : {"reranker", "classifier"}) {
    refused(base, "multi_label", "'single_label_classification'");
    refused(base, "", "'regression'");
    refused(base, 1, "is 1;");
    refused(base, json::array({"regression"}), "an array");
  }
  // As transformers, which wants two labels.
  refused("reranker", "single_label_classification", "one label");
  EXPECT_TRUE(OpenWith("base", {{"problem_type", "multi_label"}}).ok());
}

TEST(Classifier, NamesOfActivations) {
  for (const ScoreActivation activation :
       {ScoreActivation::kIdentity, ScoreActivation::kSigmoid, ScoreActivation::kSoftmax,
        ScoreActivation::kAsCrossEncoder, ScoreActivation::kAsClassifier}) {
    const ScoreActivation found = Taken(ScoreActivationFromName(ScoreActivationName(activation)));
    EXPECT_EQ(found, activation);
  }
  EXPECT_EQ(ScoreActivationName(static_cast<ScoreActivation>(9)), "unknown");
  EXPECT_EQ(*ScoreActivationFromName("none"), ScoreActivation::kIdentity);
  EXPECT_EQ(*ScoreActivationFromName("torch.nn.Identity"), ScoreActivation::kIdentity);
  EXPECT_EQ(*ScoreActivationFromName("torch.nn.modules.linear.Identity"),
            ScoreActivation::kIdentity);
  EXPECT_EQ(*ScoreActivationFromName("torch.nn.Sigmoid"), ScoreActivation::kSigmoid);
  EXPECT_EQ(*ScoreActivationFromName("torch.nn.modules.activation.Softmax"),
            ScoreActivation::kSoftmax);
  for (const std::string_view name :
       {"", "Sigmoid", "torch.nn.", "torch.nn.GELU", "default", "as"}) {
    EXPECT_TRUE(FailsWith(ScoreActivationFromName(name), {"'torch.nn.Sigmoid'"})) << name;
  }
}

}  // namespace
}  // namespace encore
