// SPDX-License-Identifier: Apache-2.0
//
// The C interface is safe to call with anything: null pointers, arrays that are too small, counts
// that no memory has, option structs of other versions.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "encore/c_api.h"
#include "tests/api/c_api_case.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

// Each kind of options has a call that a flag and a time end.
TEST_F(CApiTest, CallsEndEarly) {
  const Model dense(folder());
  const TextFolder classifier_folder("classifier");
  const Model classifier(classifier_folder.path());
  const encore_text text = Text("the cat sat");
  float values[kD];
  const auto encode = [&](const encore_call_options* call) {
    auto options = Sized<encore_encode_options>();
    options.call = call;
    return encore_encode(dense, &text, 1, &options, values, kD, nullptr, nullptr);
  };
  const auto classify = [&](const encore_call_options* call) {
    auto options = Sized<encore_score_options>();
    options.call = call;
    return encore_classify(classifier, &text, nullptr, 1, &options, values, kD, nullptr, nullptr);
  };
  const auto entities = [&](const encore_call_options* call) {
    auto options = Sized<encore_label_options>();
    options.call = call;
    encore_rows* rows = nullptr;
    const encore_status status = encore_find_entities(dense, &text, 1, &options, &rows);
    encore_rows_free(rows);
    return status;
  };
  encore_stop* stop = nullptr;
  ASSERT_EQ(encore_stop_new(&stop), ENCORE_OK);
  auto call = Sized<encore_call_options>();
  call.stop = stop;
  call.seconds = 3600;
  EXPECT_EQ(encode(&call), ENCORE_OK);
  EXPECT_EQ(classify(&call), ENCORE_OK);
  encore_stop_set(stop, 1);
  ExpectFailure(encode(&call), ENCORE_CANCELLED, {"stop"});
  ExpectFailure(classify(&call), ENCORE_CANCELLED, {"stop"});
  encore_stop_set(stop, 0);
  EXPECT_EQ(encode(&call), ENCORE_OK);
  call.seconds = 1e-9;
  ExpectFailure(encode(&call), ENCORE_DEADLINE_EXCEEDED, {"deadline"});
  ExpectFailure(classify(&call), ENCORE_DEADLINE_EXCEEDED, {"deadline"});
  for (const double seconds : {-1.0, 1e12, std::nan(""), HUGE_VAL}) {
    call.seconds = seconds;
    ExpectFailure(encode(&call), ENCORE_INVALID_ARGUMENT, {"call.seconds"});
    ExpectFailure(entities(&call), ENCORE_INVALID_ARGUMENT, {"call.seconds"});
  }
  call.size = 3;
  ExpectFailure(encode(&call), ENCORE_INVALID_ARGUMENT, {"encore_call_options"});
  encore_stop_free(stop);
  encore_stop_free(nullptr);
  encore_stop_set(nullptr, 1);
  ExpectFailure(encore_stop_new(nullptr), ENCORE_INVALID_ARGUMENT, {"stop", "NULL"});
}

TEST_F(CApiTest, NullPointersAreErrors) {
  encore_model* model = reinterpret_cast<encore_model*>(8);
  ExpectFailure(encore_open(nullptr, nullptr, &model), ENCORE_INVALID_ARGUMENT, {"folder", "NULL"});
  EXPECT_EQ(model, nullptr);
  ExpectFailure(encore_open("x", nullptr, nullptr), ENCORE_INVALID_ARGUMENT, {"model", "NULL"});
  encore_free(nullptr);
  EXPECT_EQ(encore_dimensions(nullptr), 0u);
  EXPECT_EQ(encore_max_length(nullptr), 0u);
  EXPECT_STREQ(encore_describe(nullptr), "");

  const Model open(folder());
  const encore_text text = Text("cat");
  const encore_text broken[] = {text, {nullptr, 4}};
  const encore_text empty = {nullptr, 0};
  float vectors[2 * kD];
  size_t count = 0;
  ExpectFailure(encore_encode(nullptr, &text, 1, nullptr, vectors, kD, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"model"});
  ExpectFailure(encore_encode(open, nullptr, 1, nullptr, vectors, kD, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"texts"});
  ExpectFailure(encore_encode(open, broken, 2, nullptr, vectors, 2 * kD, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"texts[1]", "4 bytes"});
  ExpectFailure(encore_encode(open, &text, 1, nullptr, nullptr, kD, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"vectors"});
  ExpectFailure(encore_score(nullptr, text, &text, 1, nullptr, vectors, 1, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"model"});
  ExpectFailure(encore_score(open, broken[1], &text, 1, nullptr, vectors, 1, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"query"});
  ExpectFailure(encore_score(open, text, nullptr, 1, nullptr, vectors, 1, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"documents"});
  ExpectFailure(encore_score(open, text, &text, 1, nullptr, nullptr, 1, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"scores"});
  const auto classify = [&](const encore_model* model, const encore_text* texts,
                            const encore_text* seconds, size_t texts_count, float* values) {
    return encore_classify(model, texts, seconds, texts_count, nullptr, values, 6, nullptr,
                           nullptr);
  };
  const TextFolder classifier_folder("classifier");
  const Model classifier(classifier_folder.path());
  ExpectFailure(classify(nullptr, &text, nullptr, 1, vectors), ENCORE_INVALID_ARGUMENT, {"model"});
  ExpectFailure(classify(classifier, nullptr, nullptr, 1, vectors), ENCORE_INVALID_ARGUMENT,
                {"texts"});
  ExpectFailure(classify(classifier, broken, nullptr, 2, vectors), ENCORE_INVALID_ARGUMENT,
                {"texts[1]"});
  ExpectFailure(classify(classifier, &text, &broken[1], 1, vectors), ENCORE_INVALID_ARGUMENT,
                {"seconds[0]"});
  ExpectFailure(classify(classifier, &text, nullptr, 1, nullptr), ENCORE_INVALID_ARGUMENT,
                {"values"});
  ExpectFailure(classify(classifier, nullptr, nullptr, 3, vectors), ENCORE_INVALID_ARGUMENT,
                {"capacity"});
  ExpectFailure(classify(open, &text, nullptr, 1, vectors), ENCORE_UNSUPPORTED, {"head"});
  EXPECT_EQ(classify(classifier, nullptr, nullptr, 0, nullptr), ENCORE_OK);
  EXPECT_EQ(encore_label_count(nullptr), 0u);
  EXPECT_EQ(encore_label(nullptr, 0), nullptr);

  ExpectFailure(encore_tokenize(nullptr, text, nullptr, nullptr, 0, &count, nullptr),
                ENCORE_INVALID_ARGUMENT, {"model"});
  count = 7;
  ExpectFailure(encore_tokenize(open, broken[1], nullptr, nullptr, 0, &count, nullptr),
                ENCORE_INVALID_ARGUMENT, {"text"});
  EXPECT_EQ(count, 0u);
  ExpectFailure(encore_tokenize(open, text, nullptr, nullptr, 0, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"count"});

  // Nothing to do, and an empty text, are no errors.
  EXPECT_EQ(encore_encode(open, nullptr, 0, nullptr, nullptr, 0, nullptr, nullptr), ENCORE_OK);
  EXPECT_EQ(encore_encode(open, &empty, 1, nullptr, vectors, kD, nullptr, nullptr), ENCORE_OK);
}

TEST_F(CApiTest, SmallArraysAreRefused) {
  const Model model(folder());
  const std::vector<std::string> texts_strings = {"a", "cat"};
  const std::vector<encore_text> texts = Views(texts_strings);
  std::vector<float> vectors(2 * kD, 7);
  ExpectFailure(
      encore_encode(model, texts.data(), 2, nullptr, vectors.data(), 2 * kD - 1, nullptr, nullptr),
      ENCORE_INVALID_ARGUMENT, {"63", "2 x 32"});
  // count * dimensions would overflow.
  ExpectFailure(
      encore_encode(model, nullptr, SIZE_MAX, nullptr, vectors.data(), 2 * kD, nullptr, nullptr),
      ENCORE_INVALID_ARGUMENT, {});
  auto options = Sized<encore_encode_options>();
  options.dimensions = SIZE_MAX;
  ExpectFailure(
      encore_encode(model, texts.data(), 2, &options, vectors.data(), 2 * kD, nullptr, nullptr),
      ENCORE_INVALID_ARGUMENT, {});
  EXPECT_EQ(vectors, std::vector<float>(2 * kD, 7));
}

TEST_F(CApiTest, CountsThatNoMemoryHasAreRefused) {
  const Model model(folder());
  const TextFolder reranker_folder("reranker");
  const Model reranker(reranker_folder.path());
  const encore_text text = Text("cat");
  float vectors[kD];
  // Arrays are said to be as large.
  for (const size_t count : {SIZE_MAX, SIZE_MAX / 16, SIZE_MAX / 32 + 1}) {
    for (const size_t capacity : {size_t{kD}, SIZE_MAX}) {
      ExpectFailure(
          encore_encode(model, &text, count, nullptr, vectors, capacity, nullptr, nullptr),
          ENCORE_INVALID_ARGUMENT, {std::to_string(count)});
      ExpectFailure(
          encore_score(reranker, text, &text, count, nullptr, vectors, capacity, nullptr, nullptr),
          ENCORE_INVALID_ARGUMENT, {std::to_string(count)});
    }
  }
  // The array is compared before texts are read: there is one.
  const encore_text broken = {nullptr, 4};
  ExpectFailure(
      encore_encode(model, &broken, size_t{1} << 40, nullptr, vectors, kD, nullptr, nullptr),
      ENCORE_INVALID_ARGUMENT, {"capacity"});
  ExpectFailure(encore_score(reranker, text, &broken, 2, nullptr, vectors, 1, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"capacity"});
}

TEST_F(CApiTest, NoTextsStillWantRightOptionsAndTheRightModel) {
  const Model model(folder());
  const TextFolder reranker_folder("reranker");
  const Model reranker(reranker_folder.path());
  const auto encode = [](const encore_model* of, const encore_encode_options* options) {
    return encore_encode(of, nullptr, 0, options, nullptr, 0, nullptr, nullptr);
  };
  EXPECT_EQ(encode(model, nullptr), ENCORE_OK);
  auto options = Sized<encore_encode_options>();
  options.prompt_name = "no such prompt";
  ExpectFailure(encode(model, &options), ENCORE_INVALID_ARGUMENT, {"no such prompt"});
  options = Sized<encore_encode_options>();
  options.dimensions = kD + 1;
  ExpectFailure(encode(model, &options), ENCORE_INVALID_ARGUMENT, {"dimensions"});
  options = Sized<encore_encode_options>();
  options.max_length = 1u << 20;
  ExpectFailure(encode(model, &options), ENCORE_INVALID_ARGUMENT, {"max_length"});

  const auto score = [](const encore_model* of, const encore_score_options* with) {
    return encore_score(of, Text("cat?"), nullptr, 0, with, nullptr, 0, nullptr, nullptr);
  };
  EXPECT_EQ(score(reranker, nullptr), ENCORE_OK);
  ExpectFailure(score(model, nullptr), ENCORE_UNSUPPORTED, {"head"});
  auto with = Sized<encore_score_options>();
  with.max_length = 1u << 20;
  ExpectFailure(score(reranker, &with), ENCORE_INVALID_ARGUMENT, {"max_length"});
}

TEST_F(CApiTest, OptionsOfOtherVersions) {
  encore_model* model = nullptr;
  encore_open_options options = {};  // no size
  ExpectFailure(encore_open(folder().c_str(), &options, &model), ENCORE_INVALID_ARGUMENT,
                {"options.size is 0", "sizeof(encore_open_options)"});
  options.size = static_cast<size_t>(1) << 40;
  ExpectFailure(encore_open(folder().c_str(), &options, &model), ENCORE_INVALID_ARGUMENT,
                {"options.size"});

  // An older header's struct, with nothing behind it: what it has counts, the rest is the default.
  struct First {
    size_t size;
    int32_t threads, normalize, pooling, ignore_unknown_keys;
    size_t max_length;
  };
  const auto first = std::make_unique<First>();
  first->size = sizeof(First);
  first->max_length = 7;
  ASSERT_EQ(encore_open(folder().c_str(), reinterpret_cast<const encore_open_options*>(first.get()),
                        &model),
            ENCORE_OK)
      << encore_last_error();
  EXPECT_EQ(encore_max_length(model), 7u);
  EXPECT_NE(std::string(encore_describe(model)).find("precision: f32"), std::string::npos);
  encore_free(model);
  first->size = sizeof(First) - 1;
  ExpectFailure(encore_open(folder().c_str(),
                            reinterpret_cast<const encore_open_options*>(first.get()), &model),
                ENCORE_INVALID_ARGUMENT, {"options.size is 31"});

  // A newer header's struct: fine as long as its additions are 0.
  struct {
    encore_open_options known;
    int64_t added;
  } newer = {};
  newer.known.size = sizeof newer;
  ASSERT_EQ(encore_open(folder().c_str(), &newer.known, &model), ENCORE_OK) << encore_last_error();
  encore_free(model);
  newer.added = 1;
  ExpectFailure(encore_open(folder().c_str(), &newer.known, &model), ENCORE_UNSUPPORTED,
                {"encore_open_options", std::to_string(sizeof(encore_open_options))});
  EXPECT_EQ(model, nullptr);

  for (const auto& [field, name] : {std::pair{&encore_open_options::normalize, "normalize"},
                                    std::pair{&encore_open_options::pooling, "pooling"},
                                    std::pair{&encore_open_options::precision, "precision"},
                                    std::pair{&encore_open_options::amx_bf16, "amx_bf16"},
                                    std::pair{&encore_open_options::compare_cache, "compare_cache"},
                                    std::pair{&encore_open_options::trust_cache, "trust_cache"},
                                    std::pair{&encore_open_options::threads, "threads"}}) {
    auto wrong = Sized<encore_open_options>();
    wrong.*field = -1;
    ExpectFailure(encore_open(folder().c_str(), &wrong, &model), ENCORE_INVALID_ARGUMENT,
                  {name, "-1"});
    EXPECT_EQ(model, nullptr);
  }
}

}  // namespace
}  // namespace encore
