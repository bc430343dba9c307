// SPDX-License-Identifier: Apache-2.0
//
// TextEncoder on the folders of tests/data/text against sentence-transformers in float64: pooling,
// dense layers, normalization, prompts, columns, spellings of settings, scores.

#include "encore/text_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/compare.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

// Of the largest magnitude in a case: 17 units in f32's last place. Two layers of f32 leave about
// 4e-7.
constexpr double kVectorTolerance = 1e-6;

std::vector<float> Values(const Tensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data());
  return std::vector<float>(data, data + tensor.size_bytes() / sizeof(float));
}

std::string Joined(const std::vector<Decision>& decisions) {
  std::string text;
  for (const Decision& d : decisions) text += d.what + ": " + d.value + " (" + d.source + ")\n";
  return text;
}

Result<TextEncoder> OpenCase(const TextFolder& folder) { return TextEncoder::Open(folder.path()); }

struct Found {
  std::vector<float> values;
  TextCounts counts;
};

void Compute(const TextEncoder& model, const TextCases& all, const TextCase& text_case,
             Found* found) {
  if (text_case.kind == "score") {
    Scores scores = Taken(model.Score(all.query, all.texts));
    *found = {scores.values, scores.counts};
    return;
  }
  if (text_case.kind.empty()) {
    Embeddings embeddings = Taken(model.Encode(all.texts, text_case.options));
    EXPECT_EQ(embeddings.vectors.shape(), Shape(all.texts.size(), text_case.expected[0].size()));
    *found = {Values(embeddings.vectors), embeddings.counts};
    return;
  }
  std::vector<std::string> second(all.texts.rbegin(), all.texts.rend());
  const ScoreOptions options{.activation = ScoreActivation::kAsCrossEncoder};
  Predictions predictions =
      Taken(text_case.kind == "pairs" ? model.Classify(all.texts, second, options)
                                      : model.Classify(all.texts, options));
  EXPECT_EQ(predictions.values.shape(), Shape(all.texts.size(), text_case.expected[0].size()));
  *found = {Values(predictions.values), predictions.counts};
}

TEST(TextEncoderTest, GivesWhatSentenceTransformersGives) {
  const TextCases all = TextCases::Read();
  ASSERT_EQ(all.cases.size(), 40u);
  double worst = 0;
  for (const TextCase& text_case : all.cases) {
    SCOPED_TRACE(text_case.name + ": " + text_case.covers);
    const std::unique_ptr<TextFolder> folder = MakeFolder(text_case);
    const TextEncoder model = Taken(OpenCase(*folder));
    Found found;
    ASSERT_NO_FATAL_FAILURE(Compute(model, all, text_case, &found));
    std::vector<double> expected;
    double largest = 0;
    for (const std::vector<double>& row : text_case.expected) {
      for (const double value : row) {
        expected.push_back(value);
        largest = std::max(largest, std::fabs(value));
      }
    }
    EXPECT_TRUE(Near(found.values, expected, kVectorTolerance * largest, &worst))
        << Joined(model.Describe());
    EXPECT_EQ(found.counts.tokens, text_case.tokens);
  }
  std::printf("worst error: %.2g of the largest magnitude\n", worst * kVectorTolerance);
}

TEST(TextEncoderTest, TellsWhatWasCut) {
  const TextCases all = TextCases::Read();
  const std::unique_ptr<TextFolder> folder = MakeFolder(all.Find("pool_mean_tokens"));
  const TextEncoder model = Taken(OpenCase(*folder));
  ASSERT_EQ(model.max_length(), 24u);
  const std::vector<std::string> texts = {
      "tea", "water boils on high mountains " + std::string("and tea tastes different there, "
                                                            "nobody in the village remembers who")};
  const Embeddings cut = Taken(model.Encode(texts));
  Tokens tokens;
  ASSERT_TRUE(model.tokenizer().Encode(texts[1], &tokens).ok());
  ASSERT_GT(tokens.ids.size(), 24u);
  EXPECT_EQ(cut.counts.texts_cut, 1u);
  EXPECT_EQ(cut.counts.cut, (std::vector<size_t>{0, tokens.ids.size() - 24}));
  EXPECT_EQ(cut.counts.tokens[1], 24u);

  EXPECT_TRUE(FailsWith(model.Encode(texts, {.on_long = OnLong::kError}), {"texts[1]"}));

  const Embeddings shorter = Taken(model.Encode({texts[1]}, {.max_length = 9}));
  EXPECT_EQ(shorter.counts.tokens[0], 9u);
  EXPECT_EQ(shorter.counts.cut[0], tokens.ids.size() - 9);
  // More than the folder's, as far as the model has positions.
  const Embeddings longer = Taken(model.Encode({texts[1]}, {.max_length = 40}));
  EXPECT_EQ(longer.counts.tokens[0], std::min<size_t>(tokens.ids.size(), 40));
  EXPECT_TRUE(FailsWith(model.Encode({"tea"}, {.max_length = 41}),
                        {"max_length is 41; wanted at most 40, the model's positions"}, kAnyCode));
}

TEST(TextEncoderTest, NoTextsGiveNoVectors) {
  const TextFolder folder;
  const TextEncoder model = Taken(OpenCase(folder));
  const Embeddings none = Taken(model.Encode(Texts()));
  EXPECT_EQ(none.vectors.shape(), Shape(0, 32));
  const Embeddings no_ids = Taken(model.EncodeIds({}));
  EXPECT_EQ(no_ids.vectors.shape(), Shape(0, 32));
}

TEST(TextEncoderTest, VectorsGoToRowsOfTheCallersThatAreApart) {
  const TextFolder folder;
  const TextEncoder model = Taken(OpenCase(folder));
  const std::vector<std::string_view> texts = {"tea", "the bread", "snow"};
  const Embeddings wanted = Taken(model.Encode(texts));
  const std::vector<float> want = Values(wanted.vectors);
  std::vector<float> memory(3 * 40, 7.0f);
  const auto encode = [&](ptrdiff_t row, ptrdiff_t column) {
    return model.Encode(texts, MutableView(memory.data(), {3, 32}, {row, column}));
  };
  ASSERT_TRUE(encode(40, 1).ok());
  for (size_t i = 0; i < memory.size(); ++i) {
    EXPECT_EQ(memory[i], i % 40 < 32 ? want[i / 40 * 32 + i % 40] : 7.0f) << i;
  }
  memory.assign(memory.size(), 7.0f);
  for (const auto& [row, column] : {std::pair<ptrdiff_t, ptrdiff_t>{0, 1},
                                    {31, 1},
                                    {-1, 1},
                                    {-40, 1},
                                    {40, 2},
                                    {40, 0},
                                    {1, 3}}) {
    const Status status = encode(row, column);
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument) << row << ", " << column;
    const std::string strides = std::to_string(row) + ", " + std::to_string(column);
    EXPECT_NE(status.message().find("strides " + strides), std::string::npos) << status.message();
  }
  EXPECT_EQ(memory, std::vector<float>(memory.size(), 7.0f));
  // The stride of a single row leads nowhere.
  EXPECT_TRUE(model.Encode({"tea"}, MutableView(memory.data(), {1, 32}, {0, 1})).ok());
}

TEST(TextEncoderTest, IdsGiveTheVectorsOfTheirText) {
  const TextCases all = TextCases::Read();
  const std::unique_ptr<TextFolder> folder = MakeFolder(all.Find("pool_all"));
  const TextEncoder model = Taken(OpenCase(*folder));
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& text : all.texts) {
    Tokens tokens;
    ASSERT_TRUE(model.tokenizer().Encode(text, &tokens, {.max_length = 24}).ok());
    ids.push_back(tokens.ids);
  }
  const Result<Embeddings> from_texts = model.Encode(all.texts);
  const Result<Embeddings> from_ids = model.EncodeIds(ids);
  ASSERT_TRUE(from_texts.ok() && from_ids.ok());
  EXPECT_TRUE(SameBits(Values(from_ids->vectors), Values(from_texts->vectors)));
  EXPECT_EQ(from_ids->counts.tokens, from_texts->counts.tokens);

  const auto refused = [&](const std::vector<std::vector<int32_t>>& wrong, const std::string& words,
                           const EncodeOptions& options = {}) {
    EXPECT_TRUE(FailsWith(model.EncodeIds(wrong, options), {words}));
  };
  refused({{2, 3}, {}}, "ids[1]");
  refused({{2, 3}, {300}}, "ids[1]");
  refused({{-1}}, "ids[0]");
  refused({std::vector<int32_t>(41, 5)}, "ids[0]");
  refused({{2, 3}}, "prompt", {.prompt = "a"});
}

TEST(TextEncoderTest, TokenVectorsAreTheMeansParts) {
  const TextCases all = TextCases::Read();
  const std::unique_ptr<TextFolder> folder = MakeFolder(all.Find("normalize_call"));
  const TextEncoder model = Taken(OpenCase(*folder));
  const std::string& text = all.texts[1];
  const TokenVectors tokens = Taken(model.EncodeTokens(text));
  const size_t rows = tokens.tokens.ids.size();
  ASSERT_EQ(tokens.vectors.shape(), Shape(rows, 32));
  ASSERT_EQ(tokens.tokens.offsets.size(), rows);
  EXPECT_EQ(text.substr(tokens.tokens.offsets[1].begin, tokens.tokens.offsets[1].end), "The");
  const Embeddings mean = Taken(model.Encode({text}));
  const std::vector<float> hidden = Values(tokens.vectors);
  std::vector<float> expected(32);
  for (size_t c = 0; c < 32; ++c) {
    double sum = 0;
    for (size_t r = 0; r < rows; ++r) sum += static_cast<double>(hidden[r * 32 + c]);
    expected[c] = static_cast<float>(sum / static_cast<double>(rows));
  }
  EXPECT_TRUE(SameBits(Values(mean.vectors), expected));
}

TEST(TextEncoderTest, OptionsOfOpenReplaceTheFolders) {
  const TextCases all = TextCases::Read();
  const std::unique_ptr<TextFolder> folder = MakeFolder(all.Find("pool_mean_tokens"));
  OpenOptions options;
  options.pooling = {PoolingMode::kMax, PoolingMode::kCls};
  options.normalize = false;
  options.max_length = 12;
  const TextEncoder model = Taken(TextEncoder::Open(folder->path(), options));
  EXPECT_EQ(model.max_length(), 12u);
  EXPECT_EQ(model.dimensions(), 64u);
  // Of pool_all, cls is first and max second; short texts are not cut there.
  const std::unique_ptr<TextFolder> other_folder = MakeFolder(all.Find("pool_all"));
  const TextEncoder other = Taken(OpenCase(*other_folder));
  const Result<Embeddings> got = model.Encode({"tea"});
  const Result<Embeddings> want = other.Encode({"tea"});
  ASSERT_TRUE(got.ok() && want.ok());
  const std::vector<float> values = Values(got->vectors);
  const std::vector<float> pooled = Values(want->vectors);
  const std::span<const float> all_values(values);
  const std::span<const float> all_pooled(pooled);
  EXPECT_TRUE(SameBits(all_values.subspan(0, 32), all_pooled.subspan(32, 32)));
  EXPECT_TRUE(SameBits(all_values.subspan(32, 32), all_pooled.subspan(0, 32)));
  options.max_length = 41;
  EXPECT_FALSE(TextEncoder::Open(folder->path(), options).ok());
}

TEST(TextEncoderTest, ScoresAreForHeads) {
  const TextFolder folder;
  const TextEncoder model = Taken(OpenCase(folder));
  EXPECT_EQ(model.Score("a", {"b"}).status().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(model.labels().empty());
  const TextFolder three("classifier");
  const TextEncoder classifier = Taken(OpenCase(three));
  EXPECT_EQ(classifier.labels(), (std::vector<std::string>{"no", "maybe", "yes"}));
  EXPECT_EQ(classifier.Score("a", {"b"}).status().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(classifier.Classify({"a", "b"}, {"c"}).status().code(), ErrorCode::kInvalidArgument);
}

TEST(TextEncoderTest, ATextAtFaultHasNoPredictions) {
  const TextFolder folder("classifier");
  const TextEncoder model = Taken(OpenCase(folder));
  EXPECT_TRUE(model.Classify({"a", "b"}).ok());
  for (const Status& status : {model.Classify({"a", "\xFF"}).status(),
                               model.Classify({"a", "b"}, {"c", "\xFF"}).status()}) {
    EXPECT_TRUE(FailsWith(status, {"s[1]: "}));
  }
}

// As CrossEncoder.predict: before the first text of a pair.
TEST(TextEncoderTest, TheDefaultPromptGoesBeforeQueries) {
  const TextCases all = TextCases::Read();
  const std::unique_ptr<TextFolder> folder = MakeFolder(all.Find("score_new_folder"));
  const Result<TextEncoder> without = OpenCase(*folder);
  folder->PatchJson("config_sentence_transformers.json",
                    {{"prompts", {{"ask", "the tea "}}}, {"default_prompt_name", "ask"}});
  const Result<TextEncoder> with = OpenCase(*folder);
  ASSERT_TRUE(without.ok() && with.ok());
  const Result<Scores> found = with->Score("bread", {"a baker"});
  const Result<Scores> wanted = without->Score("the tea bread", {"a baker"});
  const Result<Scores> other = without->Score("bread", {"a baker"});
  ASSERT_TRUE(found.ok() && wanted.ok() && other.ok());
  EXPECT_TRUE(SameBits(found->values, wanted->values));
  EXPECT_FALSE(SameBits(found->values, other->values));
}

TEST(TextEncoderTest, PairsFromIdsWantTheirTypes) {
  const TextFolder folder("reranker");
  const TextEncoder model = Taken(OpenCase(folder));
  Tokens tokens;
  ASSERT_TRUE(model.tokenizer().EncodePair("the bread", "a baker", &tokens).ok());
  const std::vector<std::vector<int32_t>> ids = {tokens.ids};
  const std::vector<std::vector<uint8_t>> types = {tokens.type_ids};
  const Result<Predictions> with = model.ClassifyIds(ids, types);
  const Result<Predictions> without = model.ClassifyIds(ids);
  const Result<Scores> scores = model.Score("the bread", {"a baker"});
  ASSERT_TRUE(with.ok() && without.ok() && scores.ok());
  EXPECT_TRUE(SameBits(Values(with->values), scores->values));
  EXPECT_FALSE(SameBits(Values(without->values), scores->values));
  EXPECT_FALSE(model.ClassifyIds(ids, {{{0, 1}}}).ok());
}

}  // namespace
}  // namespace encore
