// SPDX-License-Identifier: Apache-2.0
//
// The pre-tokenizers of `tokenizers`: normalized text to words. Not here: what words become
// (model.h).

#ifndef ENCORE_ENGINE_TOKENIZER_PRE_TOKENIZER_H_
#define ENCORE_ENGINE_TOKENIZER_PRE_TOKENIZER_H_

#include <cstdint>
#include <vector>

#include "engine/tokenizer/text_buffer.h"

namespace encore::internal {

enum class PreTokenizerStep : uint8_t {
  kWhitespaceSplit,  // words are what stands between white space
  kBert,             // the same, and every punctuation character is a word
  kWhitespace,       // words are runs of \w, and runs of what is neither \w nor white space
};

// Steps one after another, each splitting the words of the one before. Immutable.
class PreTokenizer {
 public:
  struct Scratch {
    std::vector<Span> words[2];
  };

  void Append(PreTokenizerStep step) { steps_.push_back(step); }

  // The words, none empty, in the order of the text: in `scratch`. The whole text is one if there
  // are no steps. Throws std::bad_alloc.
  const std::vector<Span>& Split(TextView text, Scratch* scratch) const;

 private:
  std::vector<PreTokenizerStep> steps_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_PRE_TOKENIZER_H_
