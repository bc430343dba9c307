// SPDX-License-Identifier: Apache-2.0
//
// The C interface's results of a size of their own are those of the C++ classes: sparse vectors,
// late interaction, entities, masked words; and static embeddings, whose size is known.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "encore/c_api.h"
#include "encore/multi_vector_encoder.h"
#include "encore/text_encoder.h"
#include "tests/api/c_api_case.h"

namespace encore {
namespace {

const std::vector<std::string> kRowTexts = {"The harbour lies between two hills.", "",
                                            "Anna lives in Berlin and works for Acme."};

std::string Head(const std::string& name) { return ENCORE_TEST_DATA_DIR "/heads/" + name; }
std::string Late() { return ENCORE_TEST_DATA_DIR "/late/own"; }

// Frees the rows.
class Rows {
 public:
  Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() { encore_rows_free(rows_); }
  // Where a call puts others.
  encore_rows** out() {
    encore_rows_free(rows_);
    rows_ = nullptr;
    return &rows_;
  }
  const encore_rows* operator->() const { return rows_; }
  const encore_rows* get() const { return rows_; }

 private:
  encore_rows* rows_ = nullptr;
};

// The fields that all results have.
void ExpectCounts(const Rows& rows, const std::vector<size_t>& starts, const TextCounts& counts) {
  ASSERT_NE(rows.get(), nullptr);
  ASSERT_EQ(rows->texts, starts.size() - 1);
  EXPECT_EQ(std::vector<size_t>(rows->starts, rows->starts + starts.size()), starts);
  EXPECT_EQ(std::vector<size_t>(rows->tokens, rows->tokens + rows->texts), counts.tokens);
  EXPECT_EQ(std::vector<size_t>(rows->cut, rows->cut + rows->texts), counts.cut);
}

encore_open_options Kind(int32_t kind) {
  auto options = Sized<encore_open_options>();
  options.kind = kind;
  return options;
}

TEST_F(CApiTest, SparseVectorsAreThoseOfTextEncoder) {
  for (const char* const name : {"splade_bert", "router"}) {
    SCOPED_TRACE(name);
    const auto expected = Taken(TextEncoder::Open(Head(name)));
    const Model model(Head(name));
    const std::vector<encore_text> texts = Views(kRowTexts);
    for (const int32_t task : {ENCORE_TASK_NONE, ENCORE_TASK_QUERY, ENCORE_TASK_DOCUMENT}) {
      SparseOptions wanted;
      auto options = Sized<encore_encode_options>();
      options.task = task;
      if (task == ENCORE_TASK_QUERY) wanted.task = "query";
      if (task == ENCORE_TASK_DOCUMENT) wanted.task = "document";
      wanted.max_active_dims = options.max_active_dims = task == ENCORE_TASK_DOCUMENT ? 3 : 0;
      const auto vectors = Taken(expected.EncodeSparse(kRowTexts, wanted));
      Rows rows;
      ASSERT_EQ(encore_encode_sparse(model, texts.data(), texts.size(), &options, rows.out()),
                ENCORE_OK)
          << encore_last_error();
      ExpectCounts(rows, vectors.row_starts, vectors.counts);
      EXPECT_EQ(rows->columns, vectors.columns);
      const size_t entries = vectors.indices.size();
      EXPECT_GT(entries, 0u);
      EXPECT_EQ(std::vector<int32_t>(rows->ids, rows->ids + entries), vectors.indices);
      EXPECT_EQ(std::vector<float>(rows->values, rows->values + entries), vectors.values);
      EXPECT_EQ(rows->labels, nullptr);
      EXPECT_EQ(rows->begins, nullptr);
    }
  }
}

TEST_F(CApiTest, LateInteractionIsThatOfMultiVectorEncoder) {
  const auto expected = MultiVectorEncoder::Open(Late());
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const encore_open_options kind = Kind(ENCORE_KIND_MULTI_VECTOR);
  const Model model(Late(), &kind);
  const size_t width = expected->dimensions();
  EXPECT_EQ(encore_dimensions(model), width);
  EXPECT_EQ(encore_max_length(model), expected->max_length(TextTask::kNone));
  EXPECT_STRNE(encore_describe(model), "");
  size_t count = 0;
  EXPECT_EQ(encore_tokenize(model, Text(kRowTexts[0]), nullptr, nullptr, 0, &count, nullptr),
            ENCORE_OK);
  EXPECT_GT(count, 2u);

  const std::vector<std::string> queries = {"Where is the harbour?", "Who works?"};
  const std::vector<encore_text> query_texts = Views(queries);
  const std::vector<encore_text> document_texts = Views(kRowTexts);
  const auto wanted_queries = expected->EncodeQueries(queries);
  const auto wanted_documents = expected->EncodeDocuments(kRowTexts);
  ASSERT_TRUE(wanted_queries.ok() && wanted_documents.ok());
  Rows query, document;
  auto options = Sized<encore_encode_options>();
  options.task = ENCORE_TASK_QUERY;
  ASSERT_EQ(
      encore_encode_multi(model, query_texts.data(), query_texts.size(), &options, query.out()),
      ENCORE_OK)
      << encore_last_error();
  options.task = ENCORE_TASK_DOCUMENT;
  ASSERT_EQ(encore_encode_multi(model, document_texts.data(), document_texts.size(), &options,
                                document.out()),
            ENCORE_OK)
      << encore_last_error();
  for (const auto& [rows, wanted] :
       {std::pair(&query, &*wanted_queries), std::pair(&document, &*wanted_documents)}) {
    ExpectCounts(*rows, wanted->row_starts, wanted->counts);
    ASSERT_EQ((*rows)->columns, width);
    EXPECT_EQ(std::memcmp((*rows)->values, wanted->vectors.data(), wanted->vectors.size_bytes()),
              0);
  }
  std::vector<float> wanted(queries.size() * kRowTexts.size()), scores(wanted.size(), NAN);
  ASSERT_TRUE(expected
                  ->Similarity(wanted_queries->rows(), wanted_documents->rows(),
                               MutableView(wanted.data(), {queries.size(), kRowTexts.size()}))
                  .ok());
  ASSERT_EQ(encore_max_sim(model, query->values, query->starts, query->texts, document->values,
                           document->starts, document->texts, scores.data(), scores.size()),
            ENCORE_OK)
      << encore_last_error();
  EXPECT_EQ(scores, wanted);
}

TEST_F(CApiTest, EntitiesAreThoseOfTextEncoder) {
  const auto expected = Taken(TextEncoder::Open(Head("ner_bert")));
  const Model model(Head("ner_bert"));
  const std::vector<encore_text> texts = Views(kRowTexts);
  for (const auto& [constant, aggregation] :
       {std::pair{ENCORE_AGGREGATION_SIMPLE, Aggregation::kSimple},
        std::pair{ENCORE_AGGREGATION_NONE, Aggregation::kNone},
        std::pair{ENCORE_AGGREGATION_FIRST, Aggregation::kFirst},
        std::pair{ENCORE_AGGREGATION_AVERAGE, Aggregation::kAverage},
        std::pair{ENCORE_AGGREGATION_MAX, Aggregation::kMax}}) {
    SCOPED_TRACE(AggregationName(aggregation));
    auto options = Sized<encore_label_options>();
    options.aggregation = constant;
    const char* const some = "O";
    options.ignored = &some;
    options.ignored_count = constant == ENCORE_AGGREGATION_MAX ? 1 : 0;
    LabelOptions wanted{.aggregation = aggregation};
    if (options.ignored_count == 0) wanted.ignore_labels = {};
    const auto entities = Taken(expected.FindEntities(kRowTexts, wanted));
    Rows rows;
    ASSERT_EQ(encore_find_entities(model, texts.data(), texts.size(), &options, rows.out()),
              ENCORE_OK)
        << encore_last_error();
    std::vector<size_t> starts = {0};
    for (const std::vector<Entity>& of_text : entities.of_texts) {
      for (const Entity& entity : of_text) {
        const size_t i = starts.back() + static_cast<size_t>(&entity - of_text.data());
        EXPECT_EQ(rows->labels[i], entity.label);
        EXPECT_EQ(rows->values[i], entity.score);
        EXPECT_EQ(rows->begins[i], entity.place.begin);
        EXPECT_EQ(rows->ends[i], entity.place.end);
      }
      starts.push_back(starts.back() + of_text.size());
    }
    EXPECT_GT(starts.back(), 0u);
    ExpectCounts(rows, starts, entities.counts);
  }
}

TEST_F(CApiTest, PredictedTokensAreThoseOfTextEncoder) {
  const auto expected = Taken(TextEncoder::Open(Head("splade_bert")));
  const Model model(Head("splade_bert"));
  const std::vector<size_t> positions = {2, 0};
  const auto logits = Taken(expected.PredictTokens(kRowTexts[0], positions));
  Rows rows;
  ASSERT_EQ(
      encore_predict_tokens(model, Text(kRowTexts[0]), positions.data(), 2, nullptr, rows.out()),
      ENCORE_OK)
      << encore_last_error();
  ExpectCounts(rows, {0, 2}, {.tokens = {logits.tokens.ids.size()}, .cut = {0}});
  EXPECT_EQ(rows->columns, logits.logits.shape()[1]);
  EXPECT_EQ(std::memcmp(rows->values, logits.logits.data(), logits.logits.size_bytes()), 0);
  const size_t beyond = 1000;
  ExpectFailure(encore_predict_tokens(model, Text(kRowTexts[0]), &beyond, 1, nullptr, rows.out()),
                ENCORE_INVALID_ARGUMENT, {"1000"});
  EXPECT_EQ(rows.get(), nullptr);
}

TEST_F(CApiTest, StaticEmbeddingsAreVectors) {
  const auto expected = Taken(TextEncoder::Open(Head("static_f16")));
  const auto embeddings = Taken(expected.Encode(kRowTexts));
  const Model model(Head("static_f16"));
  const std::vector<encore_text> texts = Views(kRowTexts);
  std::vector<float> vectors(texts.size() * encore_dimensions(model));
  ASSERT_EQ(encore_encode(model, texts.data(), texts.size(), nullptr, vectors.data(),
                          vectors.size(), nullptr, nullptr),
            ENCORE_OK)
      << encore_last_error();
  EXPECT_EQ(std::memcmp(vectors.data(), embeddings.vectors.data(), vectors.size() * 4), 0);
}

TEST_F(CApiTest, CallsOfTheOtherKindAreRefused) {
  const encore_open_options kind = Kind(ENCORE_KIND_MULTI_VECTOR);
  const Model multi(Late(), &kind);
  const Model dense(folder());
  const encore_text text = Text(kRowTexts[0]);
  const size_t starts[] = {0, 1};
  float numbers[1024] = {};
  Rows rows;
  ExpectFailure(encore_encode(multi, &text, 1, nullptr, numbers, 1024, nullptr, nullptr),
                ENCORE_UNSUPPORTED, {"ENCORE_KIND_MULTI_VECTOR; wanted ENCORE_KIND_TEXT"});
  ExpectFailure(encore_encode_sparse(multi, &text, 1, nullptr, rows.out()), ENCORE_UNSUPPORTED,
                {"wanted ENCORE_KIND_TEXT"});
  ExpectFailure(encore_find_entities(multi, &text, 1, nullptr, rows.out()), ENCORE_UNSUPPORTED, {});
  ExpectFailure(encore_encode_multi(dense, &text, 1, nullptr, rows.out()), ENCORE_UNSUPPORTED,
                {"ENCORE_KIND_TEXT; wanted ENCORE_KIND_MULTI_VECTOR"});
  ExpectFailure(encore_max_sim(dense, numbers, starts, 1, numbers, starts, 1, numbers, 1),
                ENCORE_UNSUPPORTED, {"wanted ENCORE_KIND_MULTI_VECTOR"});
  // A folder that has not what a call is about says so.
  ExpectFailure(encore_encode_sparse(dense, &text, 1, nullptr, rows.out()), ENCORE_UNSUPPORTED, {});
  ExpectFailure(encore_find_entities(dense, &text, 1, nullptr, rows.out()), ENCORE_UNSUPPORTED, {});
  ExpectFailure(encore_predict_tokens(dense, text, starts, 1, nullptr, rows.out()),
                ENCORE_UNSUPPORTED, {});
  encore_model* model = nullptr;
  ExpectFailure(encore_open(folder().c_str(), &kind, &model), ENCORE_UNSUPPORTED, {});
  const encore_open_options other = Kind(3);
  ExpectFailure(encore_open(folder().c_str(), &other, &model), ENCORE_INVALID_ARGUMENT,
                {"options.kind is 3, wanted 0 to 2"});
}

TEST_F(CApiTest, ArgumentsOfRowsAreChecked) {
  const Model sparse(Head("splade_bert"));
  const encore_open_options kind = Kind(ENCORE_KIND_MULTI_VECTOR);
  const Model multi(Late(), &kind);
  const encore_text text = Text(kRowTexts[0]);
  Rows rows;
  ExpectFailure(encore_encode_sparse(sparse, &text, 1, nullptr, nullptr), ENCORE_INVALID_ARGUMENT,
                {"rows is NULL"});
  ExpectFailure(encore_encode_sparse(nullptr, &text, 1, nullptr, rows.out()),
                ENCORE_INVALID_ARGUMENT, {"model is NULL"});
  ExpectFailure(encore_encode_sparse(sparse, nullptr, 1, nullptr, rows.out()),
                ENCORE_INVALID_ARGUMENT, {"texts is NULL"});
  auto options = Sized<encore_encode_options>();
  options.task = 3;
  ExpectFailure(encore_encode_sparse(sparse, &text, 1, &options, rows.out()),
                ENCORE_INVALID_ARGUMENT, {"options.task is 3"});
  options = Sized<encore_encode_options>();
  options.dimensions = 4;
  ExpectFailure(encore_encode_sparse(sparse, &text, 1, &options, rows.out()),
                ENCORE_INVALID_ARGUMENT, {"options.dimensions is 4"});
  options = Sized<encore_encode_options>();
  options.max_active_dims = 4;
  ExpectFailure(encore_encode_multi(multi, &text, 1, &options, rows.out()), ENCORE_INVALID_ARGUMENT,
                {"max_active_dims is 4"});
  const Model dense(folder());
  float vector[kD];
  ExpectFailure(encore_encode(dense, &text, 1, &options, vector, kD, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"max_active_dims is 4"});
  options = Sized<encore_encode_options>();
  options.task = ENCORE_TASK_QUERY;
  ExpectFailure(encore_encode(dense, &text, 1, &options, vector, kD, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"options.task is 1"});
  // A caller of version 4 knows no more.
  options = Sized<encore_encode_options>();
  options.size = offsetof(encore_encode_options, task);
  options.task = 99;
  EXPECT_EQ(encore_encode(dense, &text, 1, &options, vector, kD, nullptr, nullptr), ENCORE_OK)
      << encore_last_error();

  auto labels = Sized<encore_label_options>();
  labels.aggregation = 5;
  ExpectFailure(encore_find_entities(sparse, &text, 1, &labels, rows.out()),
                ENCORE_INVALID_ARGUMENT, {"options.aggregation is 5"});
  labels = Sized<encore_label_options>();
  labels.ignored_count = 2;
  ExpectFailure(encore_find_entities(sparse, &text, 1, &labels, rows.out()),
                ENCORE_INVALID_ARGUMENT, {"options.ignored is NULL"});
  const char* const none[] = {"O", nullptr};
  labels.ignored = none;
  ExpectFailure(encore_find_entities(sparse, &text, 1, &labels, rows.out()),
                ENCORE_INVALID_ARGUMENT, {"options.ignored[1] is NULL"});
  ExpectFailure(encore_predict_tokens(sparse, text, nullptr, 1, nullptr, rows.out()),
                ENCORE_INVALID_ARGUMENT, {"positions is NULL"});

  const std::vector<float> numbers(4 * encore_dimensions(multi), 1.0f);
  const size_t starts[] = {0, 1, 3};
  float scores[4];
  const auto score = [&](const float* queries, const size_t* query_starts, size_t count,
                         size_t capacity) {
    return encore_max_sim(multi, queries, query_starts, count, numbers.data(), starts, 2, scores,
                          capacity);
  };
  EXPECT_EQ(score(numbers.data(), starts, 2, 4), ENCORE_OK) << encore_last_error();
  ExpectFailure(score(nullptr, starts, 2, 4), ENCORE_INVALID_ARGUMENT, {"queries is NULL"});
  ExpectFailure(score(numbers.data(), nullptr, 2, 4), ENCORE_INVALID_ARGUMENT,
                {"queries starts is NULL"});
  ExpectFailure(score(numbers.data(), starts, 2, 3), ENCORE_INVALID_ARGUMENT,
                {"capacity is 3 floats, wanted 2 x 2"});
  ExpectFailure(score(numbers.data(), starts, SIZE_MAX, 4), ENCORE_INVALID_ARGUMENT, {});
  const size_t huge[] = {0, SIZE_MAX};
  ExpectFailure(score(numbers.data(), huge, 1, 4), ENCORE_INVALID_ARGUMENT, {"can be addressed"});
  const size_t falling[] = {0, 3, 2};
  ExpectFailure(score(numbers.data(), falling, 2, 4), ENCORE_INVALID_ARGUMENT, {});
  EXPECT_EQ(score(nullptr, starts, 0, 0), ENCORE_OK) << encore_last_error();
  encore_rows_free(nullptr);
}

}  // namespace
}  // namespace encore
