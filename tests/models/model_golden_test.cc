// SPDX-License-Identifier: Apache-2.0
//
// The model folders of tests/data/models against transformers in float64: embeddings, every hidden
// state and logits, by every executor, and the same bits whatever the batch.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "encore/safetensors.h"
#include "encore/thread_pool.h"
#include "engine/models/text_model.h"
#include "tests/support/compare.h"

namespace encore {
namespace {

using internal::Folder;
using internal::TextModel;
using internal::TokenBatch;

// Of the largest magnitude; torch itself is within 5e-7 in f32, and the files' rounding adds 3e-8.
// Angles of rotary positions are exact in these.
constexpr double kTolerance = 1e-6;
// Of unit vectors, where transformers rounds angles to f32.
constexpr double kVectorTolerance = 2e-6;

const std::string& Root() {
  static const std::string root = std::string(ENCORE_TEST_DATA_DIR) + "/models";
  return root;
}

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Root())) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

template <typename To, typename From>
std::vector<To> As(const SafetensorsFile& file, const std::string& name) {
  const Result<Tensor> tensor = file.Read(name);
  if (!tensor.ok() || tensor->dtype() != DTypeOf<From>::value) {
    ADD_FAILURE() << name << ": " << tensor.status().message();
    return {};
  }
  const auto* data = static_cast<const From*>(tensor->data());
  return std::vector<To>(data, data + tensor->size_bytes() / sizeof(From));
}

// A batch that owns its numbers.
struct Tokens {
  std::vector<int32_t> ids;
  std::vector<uint8_t> type_ids;
  std::vector<size_t> starts;

  TokenBatch batch() const { return {ids, type_ids, starts}; }
  Tokens Sequence(size_t b) const {
    const auto cut = [&](const auto& all) {
      return std::vector(all.begin() + static_cast<ptrdiff_t>(starts[b]),
                         all.begin() + static_cast<ptrdiff_t>(starts[b + 1]));
    };
    return {cut(ids), cut(type_ids), {0, starts[b + 1] - starts[b]}};
  }
};

struct Outputs {
  std::vector<float> embeddings, logits;
  std::vector<std::vector<float>> hidden;  // of each layer, [rows, d_model]
};

class ModelGolden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Folder folder = Taken(Folder::Open(Root() + "/" + GetParam()));
    TextModel model = Taken(TextModel::Open(folder, {}, &decisions_));
    model_.emplace(std::move(model));
    SafetensorsFile file = Taken(SafetensorsFile::Open(folder.PathOf("expected.safetensors")));
    expected_.emplace(std::move(file));
    tokens_ = {As<int32_t, int32_t>(*expected_, "ids"),
               As<uint8_t, uint8_t>(*expected_, "type_ids"),
               As<size_t, int64_t>(*expected_, "seq_starts")};
  }

  // The mean of each sequence's rows, [sequences, hidden_width()].
  std::vector<float> Means(const Tokens& tokens, const std::vector<float>& hidden) const {
    const size_t d_model = model_->hidden_width();
    std::vector<float> means;
    for (size_t b = 0; b + 1 < tokens.starts.size(); ++b) {
      for (size_t c = 0; c < d_model; ++c) {
        double sum = 0;
        for (size_t t = tokens.starts[b]; t < tokens.starts[b + 1]; ++t) {
          sum += t * d_model + c < hidden.size() ? hidden[t * d_model + c] : 0;
        }
        const auto count = static_cast<double>(tokens.starts[b + 1] - tokens.starts[b]);
        means.push_back(static_cast<float>(sum / count));
      }
    }
    return means;
  }

  // Everything the model computes of the batch. Where rows are not kAll, the last layer's state has
  // a row a sequence.
  Outputs Run(const Tokens& tokens, const Executor& executor,
              OutputRows rows = OutputRows::kAll) const {
    const TokenBatch batch = tokens.batch();
    const size_t d_model = model_->d_model();
    const size_t count = tokens.ids.size();
    const size_t sequences = tokens.starts.size() - 1;
    const size_t layers = model_->encoder().config().num_layers();
    Outputs out;
    EXPECT_TRUE(model_->CheckTokens(batch).ok());
    std::vector<float> x(count * d_model, NAN);
    const MutableView x_view(x.data(), {count, d_model});
    internal::BatchScratch scratch;
    const Status embedded = model_->Embed(batch, x_view, &scratch, executor);
    EXPECT_TRUE(embedded.ok()) << embedded.message();
    out.embeddings = x;
    const Result<Workspace> workspace =
        model_->encoder().MakeWorkspace(Batch{.seq_starts = tokens.starts}, executor);
    EXPECT_TRUE(workspace.ok());
    out.hidden.assign(layers, std::vector<float>(count * d_model, NAN));
    const size_t last = rows == OutputRows::kAll ? count : sequences;
    const size_t width = model_->hidden_width();
    out.hidden.back().assign(last * width, NAN);
    std::vector<MutableView> taps(layers);
    for (size_t i = 0; i + 1 < layers; ++i) {
      taps[i] = MutableView(out.hidden[i].data(), {count, d_model});
    }
    const MutableView y(out.hidden.back().data(), {last, width});
    const Status status =
        model_->Forward(batch, rows, x_view, y, *workspace, &scratch, executor, {.hidden = taps});
    EXPECT_TRUE(status.ok()) << status.message();
    if (!model_->has_head()) return out;

    const OutputRows read = model_->head_rows();
    if (rows != OutputRows::kAll && rows != model_->head_rows(batch)) return out;
    std::vector<float> pooled = Means(tokens, out.hidden.back());
    for (size_t b = 0; b < sequences && read != OutputRows::kAll; ++b) {
      const size_t place =
          read == OutputRows::kLast ? model_->head_place(tokens.Sequence(b).ids) : 0;
      const size_t row = rows == OutputRows::kAll ? tokens.starts[b] + place : b;
      std::copy_n(out.hidden.back().data() + row * d_model, d_model, pooled.data() + b * d_model);
    }
    out.logits.assign(sequences * model_->labels().size(), NAN);
    const Status judged = model_->Logits(
        ConstView(pooled.data(), {sequences, d_model}),
        MutableView(out.logits.data(), {sequences, model_->labels().size()}), executor);
    EXPECT_TRUE(judged.ok()) << judged.message();
    return out;
  }

  // Largest |found - expected| over the largest |expected|; NaN if any is.
  static double Error(std::span<const float> found, std::span<const double> expected) {
    EXPECT_EQ(found.size(), expected.size());
    double error = 0, largest = 0;
    for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
      const double here = std::fabs(static_cast<double>(found[i]) - expected[i]);
      if (std::isnan(here)) return here;
      error = std::max(error, here);
      largest = std::max(largest, std::fabs(expected[i]));
    }
    return error / largest;
  }

  // Of the expected rows.
  double ErrorOfRows(const std::string& name, const std::vector<float>& found) const {
    std::vector<float> some;
    const auto width = static_cast<ptrdiff_t>(found.size() / tokens_.ids.size());
    for (const ptrdiff_t row : As<ptrdiff_t, int64_t>(*expected_, "rows")) {
      some.insert(some.end(), found.begin() + row * width, found.begin() + (row + 1) * width);
    }
    return Error(some, As<double, float>(*expected_, name));
  }

  // At length 1, against transformers with angles in f32.
  void CheckVectors(const std::vector<float>& means) const {
    const std::vector<double> expected = As<double, double>(*expected_, "vectors");
    ASSERT_EQ(means.size(), expected.size());
    const size_t d_model = model_->hidden_width();
    for (size_t begin = 0; begin < means.size(); begin += d_model) {
      double squares = 0;
      for (size_t c = begin; c < begin + d_model; ++c) squares += std::pow(means[c], 2);
      for (size_t c = begin; c < begin + d_model; ++c) {
        EXPECT_NEAR(means[c] / std::sqrt(squares), expected[c], kVectorTolerance) << c;
      }
    }
  }

  std::vector<Decision> decisions_;
  std::optional<TextModel> model_;
  std::optional<SafetensorsFile> expected_;
  Tokens tokens_;
};

TEST_P(ModelGolden, AgreesWithTransformers) {
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 2}));
  double worst = 0;
  for (const Executor& executor : {Executor(), pool.executor()}) {
    const Outputs out = Run(tokens_, executor);
    std::vector<std::pair<std::string, double>> errors = {
        {"embeddings", ErrorOfRows("embeddings", out.embeddings)}};
    ASSERT_GE(out.hidden.size(), 2u);
    for (size_t i = 0; i < out.hidden.size(); ++i) {
      const std::string name = "hidden." + std::to_string(i);
      errors.emplace_back(name, ErrorOfRows(name, out.hidden[i]));
    }
    ASSERT_EQ(model_->has_head(), expected_->Find("logits") != nullptr);
    if (model_->has_head()) {
      errors.emplace_back("logits", Error(out.logits, As<double, double>(*expected_, "logits")));
    }
    for (const auto& [name, error] : errors) {
      EXPECT_LE(error, kTolerance) << name;
      worst = std::max(worst, error);
    }
    if (expected_->Find("vectors") != nullptr) CheckVectors(Means(tokens_, out.hidden.back()));
  }
  std::printf("%-14s largest error %.1e of the largest magnitude\n", GetParam().c_str(), worst);
}

TEST_P(ModelGolden, ASequenceAloneHasTheBitsItHasInTheBatch) {
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 2}));
  const Outputs together = Run(tokens_, pool.executor());
  const size_t d_model = model_->d_model();
  const size_t labels = model_->labels().size();
  for (size_t b = 0; b + 1 < tokens_.starts.size(); ++b) {
    const Outputs alone = Run(tokens_.Sequence(b), Executor());
    const auto part = [&](const std::vector<float>& all, size_t columns, bool by_token) {
      const size_t begin = by_token ? tokens_.starts[b] : b;
      const size_t end = by_token ? tokens_.starts[b + 1] : b + 1;
      return std::span(all).subspan(begin * columns, (end - begin) * columns);
    };
    EXPECT_TRUE(SameBits(alone.embeddings, part(together.embeddings, d_model, true)));
    EXPECT_TRUE(
        SameBits(alone.hidden.back(), part(together.hidden.back(), model_->hidden_width(), true)));
    EXPECT_TRUE(SameBits(alone.logits, part(together.logits, labels, false)));
  }
}

TEST_P(ModelGolden, RowsThatAreWantedAloneHaveTheSameBits) {
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = 2}));
  const Outputs all = Run(tokens_, Executor());
  const size_t width = model_->hidden_width();
  for (const Executor& executor : {Executor(), pool.executor()}) {
    const Outputs first = Run(tokens_, executor, OutputRows::kFirst);
    const Outputs last = Run(tokens_, executor, OutputRows::kLast);
    EXPECT_TRUE(SameBits(first.hidden.front(), all.hidden.front()));
    for (const Outputs* some : {&first, &last}) {
      if (!some->logits.empty()) {
        EXPECT_TRUE(SameBits(some->logits, all.logits));
      }
    }
    for (size_t b = 0; b + 1 < tokens_.starts.size(); ++b) {
      const auto row = [&](const Outputs& outputs, size_t r) {
        return std::span(outputs.hidden.back()).subspan(r * width, width);
      };
      EXPECT_TRUE(SameBits(row(first, b), row(all, tokens_.starts[b]))) << b;
      EXPECT_TRUE(SameBits(row(last, b), row(all, tokens_.starts[b + 1] - 1))) << b;
    }
  }
}

TEST_P(ModelGolden, TypeIdsThatAreNotGivenAreZero) {
  Tokens zeros = tokens_;
  std::fill(zeros.type_ids.begin(), zeros.type_ids.end(), uint8_t{0});
  Tokens none = tokens_;
  none.type_ids.clear();
  EXPECT_TRUE(SameBits(Run(none, Executor()).embeddings, Run(zeros, Executor()).embeddings));
  const bool has_types = model_->type_vocab_size() > 1;
  EXPECT_EQ(has_types,
            !SameBits(Run(none, Executor()).embeddings, Run(tokens_, Executor()).embeddings));
}

INSTANTIATE_TEST_SUITE_P(All, ModelGolden, testing::ValuesIn(CaseNames()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace encore
