// SPDX-License-Identifier: Apache-2.0
//
// The C interface: equal to the C++ one, and safe to call with anything. Not here: that the header
// is C (consumer/text.c), what vectors should be.

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
#include "tests/text_case.h"

namespace encore {
namespace {

constexpr size_t kD = 32;
constexpr size_t kMaxLength = 24;

encore_text Text(const std::string& text) { return {text.data(), text.size()}; }

std::vector<encore_text> Views(const std::vector<std::string>& texts) {
  std::vector<encore_text> views;
  for (const std::string& text : texts) views.push_back(Text(text));
  return views;
}

void Views(std::vector<std::string>&& texts) = delete;  // they must outlive the views

// Options with their size set.
template <typename T>
T Sized() {
  T options = {};
  options.size = sizeof options;
  return options;
}

// Frees the model.
class Model {
 public:
  explicit Model(const std::string& folder, const encore_open_options* options = nullptr) {
    EXPECT_EQ(encore_open(folder.c_str(), options, &model_), ENCORE_OK) << encore_last_error();
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() { encore_free(model_); }
  operator const encore_model*() const { return model_; }  // NOLINT(google-explicit-constructor)

 private:
  encore_model* model_ = nullptr;
};

class CApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModules();
    folder_.WriteJson("sentence_bert_config.json", {{"max_seq_length", kMaxLength}});
  }
  std::string folder() const { return folder_.path(); }

  // Fails with this code and a sentence that has these words.
  static void ExpectFailure(encore_status found, encore_status wanted,
                            const std::vector<std::string>& words) {
    EXPECT_EQ(found, wanted);
    const std::string sentence = encore_last_error();
    for (const std::string& word : words) {
      EXPECT_NE(sentence.find(word), std::string::npos) << "'" << word << "' in: " << sentence;
    }
  }

  // Mean pooling, normalized.
  TextFolder folder_;
};

const std::vector<std::string> kTexts = {"The cat sat on the mat.", "",
                                         "How do I renew a passport?", std::string(3000, 'x'),
                                         "dogs dogs dogs dogs dogs dogs dogs dogs dogs dogs dogs"
                                         " dogs dogs dogs dogs dogs dogs dogs dogs dogs dogs"};

TEST_F(CApiTest, VectorsAndCountsAreThoseOfTextEncoder) {
  const auto expected = TextEncoder::Open(folder());
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const auto embeddings = expected->Encode(kTexts);
  ASSERT_TRUE(embeddings.ok()) << embeddings.status().message();

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
    EXPECT_EQ(std::memcmp(vectors.data(), embeddings->vectors.data(), vectors.size() * 4), 0);
    EXPECT_EQ(tokens, embeddings->counts.tokens);
    EXPECT_EQ(cut, embeddings->counts.cut);
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
                                            std::pair{ENCORE_PRECISION_INT8, Precision::kInt8}}) {
    const auto expected = TextEncoder::Open(folder(), {.precision = precision});
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    const auto embeddings = expected->Encode(texts_strings);
    ASSERT_TRUE(embeddings.ok()) << embeddings.status().message();
    auto options = Sized<encore_open_options>();
    options.precision = constant;
    const Model model(folder(), &options);
    float vector[kD];
    ASSERT_EQ(encore_encode(model, texts.data(), 1, nullptr, vector, kD, nullptr, nullptr),
              ENCORE_OK);
    EXPECT_EQ(std::memcmp(vector, embeddings->vectors.data(), sizeof vector), 0);
  }
}

TEST_F(CApiTest, ScoresAreThoseOfTextEncoder) {
  const TextFolder reranker("reranker");
  const auto expected = TextEncoder::Open(reranker.path());
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const auto scores = expected->Score("cat?", kTexts);
  ASSERT_TRUE(scores.ok()) << scores.status().message();

  const Model model(reranker.path());
  const std::vector<encore_text> documents = Views(kTexts);
  std::vector<float> found(kTexts.size(), NAN);
  std::vector<size_t> tokens(kTexts.size());
  ASSERT_EQ(encore_score(model, Text("cat?"), documents.data(), documents.size(), nullptr,
                         found.data(), found.size(), tokens.data(), nullptr),
            ENCORE_OK)
      << encore_last_error();
  EXPECT_EQ(found, scores->values);
  EXPECT_EQ(tokens, scores->counts.tokens);

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

TEST_F(CApiTest, TokenizeTellsHowManyIdsThereAre) {
  const auto tokenizer = Tokenizer::Open(folder());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::string sentence = "The cats sat";
  Tokens expected;
  ASSERT_TRUE(tokenizer->Encode(sentence, &expected).ok());
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
                                    std::pair{&encore_open_options::threads, "threads"}}) {
    auto wrong = Sized<encore_open_options>();
    wrong.*field = -1;
    ExpectFailure(encore_open(folder().c_str(), &wrong, &model), ENCORE_INVALID_ARGUMENT,
                  {name, "-1"});
    EXPECT_EQ(model, nullptr);
  }
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
  EXPECT_EQ(sizeof(encore_open_options), 40u);
  EXPECT_EQ(offsetof(encore_open_options, threads), 8u);
  EXPECT_EQ(offsetof(encore_open_options, normalize), 12u);
  EXPECT_EQ(offsetof(encore_open_options, pooling), 16u);
  EXPECT_EQ(offsetof(encore_open_options, ignore_unknown_keys), 20u);
  EXPECT_EQ(offsetof(encore_open_options, max_length), 24u);
  EXPECT_EQ(offsetof(encore_open_options, precision), 32u);
  EXPECT_EQ(offsetof(encore_open_options, amx_bf16), 36u);
  EXPECT_EQ(sizeof(encore_encode_options), 64u);
  EXPECT_EQ(offsetof(encore_encode_options, max_length), 24u);
  EXPECT_EQ(offsetof(encore_encode_options, on_long), 32u);
  EXPECT_EQ(offsetof(encore_encode_options, normalize), 44u);
  EXPECT_EQ(offsetof(encore_encode_options, dimensions), 48u);
  EXPECT_EQ(sizeof(encore_score_options), 40u);
  EXPECT_EQ(offsetof(encore_score_options, activation), 28u);
  EXPECT_EQ(sizeof(encore_tokenize_options), 32u);
  EXPECT_EQ(offsetof(encore_tokenize_options, without_special_tokens), 28u);
}

}  // namespace
}  // namespace encore
