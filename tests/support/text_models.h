// SPDX-License-Identifier: Apache-2.0
//
// A folder of each kind that TextEncoder and MultiVectorEncoder open, in each way to open one.

#ifndef ENCORE_TESTS_SUPPORT_TEXT_MODELS_H_
#define ENCORE_TESTS_SUPPORT_TEXT_MODELS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "encore/text_encoder.h"
#include "tests/support/text_case.h"

namespace encore {

struct TextModelCase {
  std::string name;
  std::string path;
  OpenOptions options = {};
  bool late = false;  // of MultiVectorEncoder
};

// The folder of a dense model, a folder for its cache, and cases that use them and others.
class TextModelCases {
 public:
  TextModelCases() {
    dense_.WriteModules();
    const auto dense = [&](const std::string& name, OpenOptions options) {
      cases_.push_back({name, dense_.path(), std::move(options)});
    };
    dense("dense", {});
    dense("bf16", {.precision = Precision::kBF16});
    dense("int8", {.precision = Precision::kInt8});
    dense("int4", {.precision = Precision::kInt4});
    dense("copied", {.weights = FileMemory::kCopied});
    dense("cached", {.cache = dense_.File("cache")});
    const std::string data = ENCORE_TEST_DATA_DIR;
    for (const char* name :
         {"text/reranker", "text/classifier", "heads/static_f16", "heads/model2vec",
          "heads/splade_bert", "heads/router", "heads/m3", "heads/ner_bert", "heads/reranker_qwen3",
          "heads/new_gte", "models/deberta_v2", "models/albert", "models/nomic_moe",
          "sentences/sentence_t5", "sentences/clip", "sentences/siglip",
          "sentences/embedding_gemma", "sentences/embedding_gemma2"}) {
      cases_.push_back({name, data + "/" + name});
    }
    cases_.push_back({"masked words", data + "/heads/mlm_esm", {.language_head = true}});
    for (const char* name : {"late/own", "late/pylate", "late/stanford", "heads/m3"}) {
      cases_.push_back({std::string(name) + " late", data + "/" + name, {}, /*late=*/true});
    }
  }

  auto begin() const { return cases_.begin(); }
  auto end() const { return cases_.end(); }

 private:
  TextFolder dense_;
  std::vector<TextModelCase> cases_;
};

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_TEXT_MODELS_H_
