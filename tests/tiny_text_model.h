// SPDX-License-Identifier: Apache-2.0
//
// A BERT of a few thousand weights in a folder as Hugging Face and sentence-transformers lay it
// out, written when a test needs one. Its weights are drawn, so that every tensor counts. Not here:
// what its vectors should be.

#ifndef ENCORE_TESTS_TINY_TEXT_MODEL_H_
#define ENCORE_TESTS_TINY_TEXT_MODEL_H_

#include <cstddef>
#include <string>
#include <vector>

namespace encore {

// d_model 32, 2 layers of 4 heads, 64 positions. As a sentence encoder: mean pooling, normalized.
// As a reranker: a head of one label, no pooling.
struct TinyTextModel {
  static constexpr size_t kDimensions = 32;
  static constexpr size_t kLayers = 2;
  static constexpr size_t kHeads = 4;
  static constexpr size_t kMaxLength = 24;  // the sentence encoder's; the reranker's is 64

  enum class Kind { kSentences, kReranker };

  // [PAD] [UNK] [CLS] [SEP] [MASK], then words and pieces; the line is the id.
  static std::vector<std::string> Vocabulary();
  // Id of a token of that vocabulary.
  static int Id(const std::string& token);

  // Fills an existing folder; failures are failures of the test.
  static void Write(const std::string& folder, Kind kind = Kind::kSentences);
};

}  // namespace encore

#endif  // ENCORE_TESTS_TINY_TEXT_MODEL_H_
