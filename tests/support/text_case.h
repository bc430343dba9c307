// SPDX-License-Identifier: Apache-2.0
//
// Model folders of tests/data/text: the cases that sentence-transformers computed, and folders that
// a test changes.

#ifndef ENCORE_TESTS_SUPPORT_TEXT_CASE_H_
#define ENCORE_TESTS_SUPPORT_TEXT_CASE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/support/safetensors_bytes.h"

namespace encore {

// A copy of a folder in tests/data/text, gone afterwards.
class TextFolder {
 public:
  // "base", "reranker" or "classifier"; "../models/NAME" for one of tests/data/models.
  explicit TextFolder(const std::string& base = "base");

  std::string path() const { return folder_.File("model"); }
  std::string File(const std::string& name) const { return path() + "/" + name; }

  void Write(const std::string& name, const std::string& text) const;
  void WriteJson(const std::string& name, const nlohmann::json& json) const;
  nlohmann::json ReadJson(const std::string& name) const;
  // The file's members, with these changed or added.
  void PatchJson(const std::string& name, const nlohmann::json& members) const;
  // tests/data/text/NAME.safetensors as the weights of a dense module.
  void AddDense(const std::string& name, const std::string& module) const;
  // modules.json of a transformer, a pooling of these booleans, and whatever follows.
  void WriteModules(const std::vector<std::string>& after = {"Normalize"},
                    const nlohmann::json& pooling = {{"pooling_mode_mean_tokens", true}}) const;

 private:
  TemporaryFolder folder_;
};

// One of cases.json.
struct TextCase {
  std::string name;
  std::string covers;
  std::string kind;  // "", "score", "pairs" or "texts"
  EncodeOptions options;
  std::vector<size_t> tokens;
  std::vector<std::vector<double>> expected;
  nlohmann::json json;
};

struct TextCases {
  // Throws what nlohmann throws.
  static TextCases Read();
  const TextCase& Find(const std::string& name) const;

  std::vector<std::string> texts;
  std::string query;
  std::vector<TextCase> cases;
};

// Builds the case's folder as tests/make/make_text_fixtures.py did.
std::unique_ptr<TextFolder> MakeFolder(const TextCase& text_case);

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_TEXT_CASE_H_
