// SPDX-License-Identifier: Apache-2.0
//
// The pre-tokenizers of `tokenizers`: normalized text to words.

#ifndef ENCORE_ENGINE_TOKENIZER_PRE_TOKENIZER_H_
#define ENCORE_ENGINE_TOKENIZER_PRE_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/tokenizer/text_buffer.h"

namespace encore::inline v0_1::internal {

// One pre-tokenizer. Immutable.
class WordStep {
 public:
  virtual ~WordStep() = default;
  // Appends the parts of words of `text` to `finer`. A step that changes the text writes it to
  // `changed`, which is empty, and returns that. Throws std::bad_alloc.
  virtual TextView Apply(TextView text, const std::vector<Span>& words, TextBuffer* changed,
                         std::vector<Span>* finer) const = 0;
  // At most how many times as many bytes a text has afterwards.
  virtual double Growth() const { return 1; }
};

enum class PreTokenizerStep : uint8_t {
  kWhitespaceSplit,   // words are between white space
  kBert,              // the same, and every punctuation character is a word
  kWhitespace,        // words are runs of \w, and runs of what is neither \w nor white space
  kDigits,            // runs of digits apart from the rest
  kIndividualDigits,  // every digit apart
};

// Puts a space in front of words that do not start with one (metaspace.cc).
std::unique_ptr<const WordStep> MakeSpaceBefore();

// Steps one after another, each splitting the words of the one before. Immutable.
class PreTokenizer {
 public:
  struct Scratch {
    std::vector<Span> words[2];
    TextBuffer buffers[2];
    size_t memory_bytes() const {
      return MemoryBytes(words[0], words[1]) + buffers[0].memory_bytes() +
             buffers[1].memory_bytes();
    }
  };
  struct Words {
    TextView text;
    const std::vector<Span>& words;  // none empty, in the order of the text
  };

  void Append(PreTokenizerStep step);
  void Append(std::unique_ptr<const WordStep> step) { steps_.push_back(std::move(step)); }

  // The words of a text: in `scratch`, or the text itself. All of it is one word if there are no
  // steps. Throws std::bad_alloc.
  Words Split(TextView text, Scratch* scratch) const;
  // At most how many times as many bytes a text has afterwards.
  double Growth() const;

 private:
  std::vector<std::unique_ptr<const WordStep>> steps_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_PRE_TOKENIZER_H_
