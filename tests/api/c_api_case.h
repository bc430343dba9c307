// SPDX-License-Identifier: Apache-2.0
//
// A folder, a model and arguments for tests of the C interface.

#ifndef ENCORE_TESTS_API_C_API_CASE_H_
#define ENCORE_TESTS_API_C_API_CASE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "encore/c_api.h"
#include "tests/support/text_case.h"

namespace encore {

inline constexpr size_t kD = 32;
inline constexpr size_t kMaxLength = 24;

inline encore_text Text(const std::string& text) { return {text.data(), text.size()}; }
inline encore_text Text(const char* text) { return {text, std::strlen(text)}; }

inline std::vector<encore_text> Views(const std::vector<std::string>& texts) {
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

}  // namespace encore

#endif  // ENCORE_TESTS_API_C_API_CASE_H_
