// SPDX-License-Identifier: Apache-2.0
//
// The C interface is equal to the C++ one.

#include "encore/c_api.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "encore/text_encoder.h"
#include "encore/version.h"
#include "tests/api/c_api_case.h"
#include "tests/support/text_case.h"

namespace encore {
namespace {

const std::vector<std::string> kTexts = {"The cat sat on the mat.", "",
                                         "How do I renew a passport?", std::string(3000, 'x'),
                                         "dogs dogs dogs dogs dogs dogs dogs dogs dogs dogs dogs"
                                         " dogs dogs dogs dogs dogs dogs dogs dogs dogs dogs"};

TEST_F(CApiTest, VectorsAndCountsAreThoseOfTextEncoder) {
  const auto expected = Taken(TextEncoder::Open(folder()));
  const auto embeddings = Taken(expected.Encode(kTexts));

  for (int32_t threads : {0, 1, 2}) {
    auto options = Sized<encore_open_options>();
    options.threads = threads;
    const Model model(folder(), &options);
    EXPECT_EQ(encore_dimensions(model), kD);
    EXPECT_EQ(encore_max_length(model), kMaxLength);
    std::vector<float> vectors(kTexts.size() * kD, NAN);
    std::vector<size_t> tokens(kTexts.size(), 99);
    std::vector<size_t> cut(kTexts.size(), 99);
    const std::vector<encore_text> texts = Views(kTexts);
    ASSERT_EQ(encore_encode(model, texts.data(), texts.size(), nullptr, vectors.data(),
                            vectors.size(), tokens.data(), cut.data()),
              ENCORE_OK)
        << encore_last_error();
    EXPECT_EQ(std::memcmp(vectors.data(), embeddings.vectors.data(), vectors.size() * 4), 0);
    EXPECT_EQ(tokens, embeddings.counts.tokens);
    EXPECT_EQ(cut, embeddings.counts.cut);
    EXPECT_GT(cut.back(), 0u);
  }
}

TEST_F(CApiTest, EncodeOptionsArrive) {
  const Model model(folder());
  const std::vector<std::string> texts_strings = {"The cat sat"};
  const std::vector<encore_text> texts = Views(texts_strings);
  float plain[kD];
  ASSERT_EQ(encore_encode(model, texts.data(), 1, nullptr, plain, kD, nullptr, nullptr), ENCORE_OK);

  auto options = Sized<encore_encode_options>();
  options.normalize = ENCORE_NO;
  float longer[kD];
  ASSERT_EQ(encore_encode(model, texts.data(), 1, &options, longer, kD, nullptr, nullptr),
            ENCORE_OK);
  EXPECT_NE(std::memcmp(plain, longer, sizeof plain), 0);

  options = Sized<encore_encode_options>();
  options.dimensions = 8;
  float columns[8];
  ASSERT_EQ(encore_encode(model, texts.data(), 1, &options, columns, 8, nullptr, nullptr),
            ENCORE_OK);
  EXPECT_EQ(std::memcmp(plain, columns, sizeof columns), 0);

  // A prompt is text before the text.
  options = Sized<encore_encode_options>();
  options.prompt = "The cat ";
  const std::vector<std::string> rest_strings = {"sat"};
  const std::vector<encore_text> rest = Views(rest_strings);
  float prompted[kD];
  ASSERT_EQ(encore_encode(model, rest.data(), 1, &options, prompted, kD, nullptr, nullptr),
            ENCORE_OK)
      << encore_last_error();
  EXPECT_EQ(std::memcmp(plain, prompted, sizeof plain), 0);
  options = Sized<encore_encode_options>();
  options.prompt_name = "no such prompt";
  ExpectFailure(encore_encode(model, rest.data(), 1, &options, prompted, kD, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"no such prompt"});

  size_t all = 0;
  ASSERT_EQ(encore_encode(model, texts.data(), 1, nullptr, plain, kD, &all, nullptr), ENCORE_OK);
  options = Sized<encore_encode_options>();
  options.max_length = 3;
  options.on_long = ENCORE_LONG_REFUSE;
  ExpectFailure(encore_encode(model, texts.data(), 1, &options, plain, kD, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {std::to_string(all), "3"});
  options.on_long = ENCORE_LONG_CUT;
  size_t tokens = 0;
  size_t cut = 0;
  ASSERT_EQ(encore_encode(model, texts.data(), 1, &options, plain, kD, &tokens, &cut), ENCORE_OK);
  EXPECT_EQ(tokens, 3u);
  EXPECT_EQ(cut, all - 3);

  const std::vector<std::string> invalid_strings = {"cat \xff"};
  const std::vector<encore_text> invalid = Views(invalid_strings);
  ExpectFailure(encore_encode(model, invalid.data(), 1, nullptr, plain, kD, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"UTF-8", "4"});
  options = Sized<encore_encode_options>();
  options.on_invalid_utf8 = ENCORE_UTF8_REPLACE;
  EXPECT_EQ(encore_encode(model, invalid.data(), 1, &options, plain, kD, nullptr, nullptr),
            ENCORE_OK);
}

TEST_F(CApiTest, OpenOptionsArrive) {
  auto options = Sized<encore_open_options>();
  options.threads = 1;
  options.normalize = ENCORE_NO;
  options.pooling = ENCORE_POOLING_MEAN | ENCORE_POOLING_CLS;
  options.max_length = 7;
  const Model model(folder(), &options);
  EXPECT_EQ(encore_dimensions(model), 2 * kD);
  EXPECT_EQ(encore_max_length(model), 7u);
  const std::string description = encore_describe(model);
  EXPECT_NE(description.find("pooling: "), std::string::npos) << description;
  EXPECT_EQ(description.back(), '\n');
}

TEST_F(CApiTest, PrecisionArrives) {
  const std::vector<std::string> texts_strings = {"The cat sat"};
  const std::vector<encore_text> texts = Views(texts_strings);
  for (const auto& [constant, precision] : {std::pair{ENCORE_PRECISION_F32, Precision::kF32},
                                            std::pair{ENCORE_PRECISION_BF16, Precision::kBF16},
                                            std::pair{ENCORE_PRECISION_INT8, Precision::kInt8},
                                            std::pair{ENCORE_PRECISION_INT4, Precision::kInt4}}) {
    const auto expected = Taken(TextEncoder::Open(folder(), {.precision = precision}));
    const auto embeddings = Taken(expected.Encode(texts_strings));
    auto options = Sized<encore_open_options>();
    options.precision = constant;
    const Model model(folder(), &options);
    float vector[kD];
    ASSERT_EQ(encore_encode(model, texts.data(), 1, nullptr, vector, kD, nullptr, nullptr),
              ENCORE_OK);
    EXPECT_EQ(std::memcmp(vector, embeddings.vectors.data(), sizeof vector), 0);
  }
}

TEST_F(CApiTest, ScoresAreThoseOfTextEncoder) {
  const TextFolder reranker("reranker");
  const auto expected = Taken(TextEncoder::Open(reranker.path()));
  const auto scores = Taken(expected.Score("cat?", kTexts));

  const Model model(reranker.path());
  const std::vector<encore_text> documents = Views(kTexts);
  std::vector<float> found(kTexts.size(), NAN);
  std::vector<size_t> tokens(kTexts.size());
  ASSERT_EQ(encore_score(model, Text("cat?"), documents.data(), documents.size(), nullptr,
                         found.data(), found.size(), tokens.data(), nullptr),
            ENCORE_OK)
      << encore_last_error();
  EXPECT_EQ(found, scores.values);
  EXPECT_EQ(tokens, scores.counts.tokens);

  auto options = Sized<encore_score_options>();
  options.activation = ENCORE_ACTIVATION_IDENTITY;
  std::vector<float> logits(found.size());
  ASSERT_EQ(encore_score(model, Text("cat?"), documents.data(), documents.size(), &options,
                         logits.data(), logits.size(), nullptr, nullptr),
            ENCORE_OK);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], 1 / (1 + std::exp(-logits[i])), 1e-6);
  }

  // A model without a head says so.
  const Model sentences(folder());
  ExpectFailure(encore_score(sentences, Text("cat?"), documents.data(), 1, nullptr, found.data(), 1,
                             nullptr, nullptr),
                ENCORE_UNSUPPORTED, {});
}

TEST_F(CApiTest, ClassesAreThoseOfTextEncoder) {
  for (const std::string type : {"", "regression", "multi_label_classification"}) {
    const TextFolder classifier("classifier");
    if (!type.empty()) classifier.PatchJson("config.json", {{"problem_type", type}});
    const auto expected = Taken(TextEncoder::Open(classifier.path()));
    const Model model(classifier.path());
    ASSERT_EQ(encore_label_count(model), expected.labels().size());
    for (size_t i = 0; i < expected.labels().size(); ++i) {
      EXPECT_EQ(encore_label(model, i), expected.labels()[i]);
    }
    EXPECT_EQ(encore_label(model, expected.labels().size()), nullptr);

    const std::vector<encore_text> texts = Views(kTexts);
    std::vector<float> found(kTexts.size() * encore_label_count(model));
    std::vector<size_t> tokens(kTexts.size());
    auto options = Sized<encore_score_options>();
    for (int32_t choice = 0; choice <= ENCORE_ACTIVATION_AS_CLASSIFIER; ++choice) {
      SCOPED_TRACE(type + " " + std::to_string(choice));
      options.activation = choice;
      ScoreOptions wanted;
      if (choice > 0) wanted.activation = static_cast<ScoreActivation>(choice - 1);
      for (const encore_text* seconds : {static_cast<const encore_text*>(nullptr), texts.data()}) {
        const auto predictions =
            Taken(seconds == nullptr ? expected.Classify(kTexts, wanted)
                                     : expected.Classify(kTexts, kTexts, wanted));
        ASSERT_EQ(encore_classify(model, texts.data(), seconds, texts.size(), &options,
                                  found.data(), found.size(), tokens.data(), nullptr),
                  ENCORE_OK)
            << encore_last_error();
        EXPECT_EQ(tokens, predictions.counts.tokens);
        EXPECT_EQ(
            0, std::memcmp(found.data(), predictions.values.data(), found.size() * sizeof(float)));
      }
    }
    options.activation = ENCORE_ACTIVATION_AS_CLASSIFIER + 1;
    ExpectFailure(encore_classify(model, texts.data(), nullptr, texts.size(), &options,
                                  found.data(), found.size(), nullptr, nullptr),
                  ENCORE_INVALID_ARGUMENT, {"activation", "6"});
  }
}

TEST_F(CApiTest, TokenizeTellsHowManyIdsThereAre) {
  const auto tokenizer = Taken(Tokenizer::Open(folder()));
  const std::string sentence = "The cats sat";
  Tokens expected;
  ASSERT_TRUE(tokenizer.Encode(sentence, &expected).ok());
  const size_t all = expected.ids.size();
  ASSERT_GT(all, 4u);

  const Model model(folder());
  size_t count = 99;
  ASSERT_EQ(encore_tokenize(model, Text(sentence), nullptr, nullptr, 0, &count, nullptr),
            ENCORE_OK);
  ASSERT_EQ(count, all);
  std::vector<int32_t> ids(count, -1);
  size_t cut = 99;
  ASSERT_EQ(encore_tokenize(model, Text(sentence), nullptr, ids.data(), all, &count, &cut),
            ENCORE_OK);
  EXPECT_EQ(ids, expected.ids);
  EXPECT_EQ(cut, 0u);

  ids.assign(count, -1);
  ExpectFailure(
      encore_tokenize(model, Text(sentence), nullptr, ids.data(), all - 1, &count, nullptr),
      ENCORE_INVALID_ARGUMENT, {std::to_string(all - 1), std::to_string(all)});
  EXPECT_EQ(count, all);
  EXPECT_EQ(ids, std::vector<int32_t>(all, -1));

  auto options = Sized<encore_tokenize_options>();
  options.without_special_tokens = 1;
  ASSERT_EQ(encore_tokenize(model, Text(sentence), &options, ids.data(), all, &count, nullptr),
            ENCORE_OK);
  EXPECT_EQ(count, all - 2);
  EXPECT_EQ(ids[0], expected.ids[1]);

  // What the model is given, unless more is asked for.
  std::string many;
  for (int i = 0; i < 100; ++i) many += "a ";
  ASSERT_EQ(encore_tokenize(model, Text(many), nullptr, nullptr, 0, &count, &cut), ENCORE_OK);
  EXPECT_EQ(count, kMaxLength);
  EXPECT_EQ(cut, 102 - kMaxLength);
  options = Sized<encore_tokenize_options>();
  options.max_length = SIZE_MAX;
  ASSERT_EQ(encore_tokenize(model, Text(many), &options, nullptr, 0, &count, nullptr), ENCORE_OK);
  EXPECT_EQ(count, 102u);
}

TEST_F(CApiTest, LongSentencesAreCut) {
  nlohmann::json prompts = nlohmann::json::object();
  for (int i = 0; i < 100; ++i) prompts["a name of a prompt, number " + std::to_string(i)] = "x";
  folder_.WriteJson("config_sentence_transformers.json", {{"prompts", prompts}});
  const Model model(folder());
  auto options = Sized<encore_encode_options>();
  options.prompt_name = "none";
  ExpectFailure(encore_encode(model, nullptr, 0, &options, nullptr, 0, nullptr, nullptr),
                ENCORE_INVALID_ARGUMENT, {"'none'", "number 0"});
  const std::string sentence = encore_last_error();
  EXPECT_EQ(sentence.size(), 2047u);
  EXPECT_TRUE(sentence.ends_with("...")) << sentence;
}

TEST_F(CApiTest, ErrorsStayOnTheirThread) {
  encore_model* model = nullptr;
  EXPECT_EQ(encore_open("/no/such/folder", nullptr, &model), ENCORE_NOT_FOUND);
  const std::string here = encore_last_error();
  EXPECT_NE(here.find("/no/such/folder"), std::string::npos) << here;
  std::thread([] {
    EXPECT_STREQ(encore_last_error(), "");
    EXPECT_EQ(encore_dimensions(nullptr), 0u);
    encore_open(nullptr, nullptr, nullptr);
    EXPECT_STRNE(encore_last_error(), "");
  }).join();
  EXPECT_EQ(encore_last_error(), here);
}

TEST_F(CApiTest, CallsOnOneModelAtOnce) {
  auto options = Sized<encore_open_options>();
  options.threads = 2;
  const Model model(folder(), &options);
  const std::vector<encore_text> texts = Views(kTexts);
  std::vector<float> expected(kTexts.size() * kD);
  ASSERT_EQ(encore_encode(model, texts.data(), texts.size(), nullptr, expected.data(),
                          expected.size(), nullptr, nullptr),
            ENCORE_OK);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      std::vector<float> vectors(expected.size());
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(encore_encode(model, texts.data(), texts.size(), nullptr, vectors.data(),
                                vectors.size(), nullptr, nullptr),
                  ENCORE_OK);
        EXPECT_EQ(vectors, expected);
        EXPECT_NE(encore_tokenize(model, texts[0], nullptr, nullptr, 0, nullptr, nullptr),
                  ENCORE_OK);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(CApiVersionTest, IsTheLibrarys) {
  EXPECT_STREQ(encore_version(), ENCORE_VERSION_STRING);
  EXPECT_EQ(encore_c_api_version(), ENCORE_C_API_VERSION);
}

// The interface is a promise: sizes and places of fields on machines with 64-bit pointers.
TEST(CApiLayoutTest, StructsKeepTheirLayout) {
  if (sizeof(void*) != 8) GTEST_SKIP() << "the sizes here are those of 64-bit machines";
  EXPECT_EQ(sizeof(encore_text), 16u);
  EXPECT_EQ(sizeof(encore_open_options), 160u);
  EXPECT_EQ(offsetof(encore_open_options, threads), 8u);
  EXPECT_EQ(offsetof(encore_open_options, normalize), 12u);
  EXPECT_EQ(offsetof(encore_open_options, pooling), 16u);
  EXPECT_EQ(offsetof(encore_open_options, ignore_unknown_keys), 20u);
  EXPECT_EQ(offsetof(encore_open_options, max_length), 24u);
  EXPECT_EQ(offsetof(encore_open_options, precision), 32u);
  EXPECT_EQ(offsetof(encore_open_options, amx_bf16), 36u);
  EXPECT_EQ(offsetof(encore_open_options, cache), 40u);
  EXPECT_EQ(offsetof(encore_open_options, compare_cache), 48u);
  EXPECT_EQ(offsetof(encore_open_options, trust_cache), 52u);
  EXPECT_EQ(offsetof(encore_open_options, kind), 56u);
  EXPECT_EQ(offsetof(encore_open_options, language_head), 60u);
  EXPECT_EQ(offsetof(encore_open_options, parallel_for), 64u);
  EXPECT_EQ(offsetof(encore_open_options, cores), 88u);
  EXPECT_EQ(offsetof(encore_open_options, on_start), 104u);
  EXPECT_EQ(offsetof(encore_open_options, keep), 120u);
  EXPECT_EQ(offsetof(encore_open_options, task), 136u);
  EXPECT_EQ(offsetof(encore_open_options, copy_weights), 144u);
  EXPECT_EQ(offsetof(encore_open_options, kept_bytes), 152u);
  EXPECT_EQ(sizeof(encore_model_memory), 40u);
  EXPECT_EQ(offsetof(encore_model_memory, scratch), 32u);
  EXPECT_EQ(sizeof(encore_encode_options), 88u);
  EXPECT_EQ(offsetof(encore_encode_options, max_length), 24u);
  EXPECT_EQ(offsetof(encore_encode_options, on_long), 32u);
  EXPECT_EQ(offsetof(encore_encode_options, normalize), 44u);
  EXPECT_EQ(offsetof(encore_encode_options, dimensions), 48u);
  EXPECT_EQ(offsetof(encore_encode_options, task), 64u);
  EXPECT_EQ(offsetof(encore_encode_options, max_active_dims), 72u);
  EXPECT_EQ(sizeof(encore_score_options), 64u);
  EXPECT_EQ(offsetof(encore_score_options, activation), 28u);
  EXPECT_EQ(sizeof(encore_tokenize_options), 32u);
  EXPECT_EQ(offsetof(encore_tokenize_options, without_special_tokens), 28u);
  EXPECT_EQ(sizeof(encore_label_options), 64u);
  EXPECT_EQ(offsetof(encore_label_options, ignored), 32u);
  EXPECT_EQ(offsetof(encore_encode_options, call), 80u);
  EXPECT_EQ(offsetof(encore_score_options, call), 40u);
  EXPECT_EQ(offsetof(encore_label_options, call), 56u);
  EXPECT_EQ(offsetof(encore_score_options, prompt), 56u);
  EXPECT_EQ(sizeof(encore_call_options), 56u);
  EXPECT_EQ(offsetof(encore_call_options, seconds), 16u);
  EXPECT_EQ(offsetof(encore_call_options, progress), 32u);
  EXPECT_EQ(offsetof(encore_call_options, background), 48u);
  EXPECT_EQ(sizeof(encore_call_stats), 80u);
  EXPECT_EQ(offsetof(encore_call_stats, texts), 48u);
  EXPECT_EQ(sizeof(encore_call_progress), 32u);
  EXPECT_EQ(sizeof(encore_rows), 80u);
  EXPECT_EQ(offsetof(encore_rows, values), 24u);
  EXPECT_EQ(offsetof(encore_rows, cut), 72u);
}

}  // namespace
}  // namespace encore
