// SPDX-License-Identifier: Apache-2.0
//
// The normalizers of `tokenizers`: text to text, with each character's offsets in the input.

#ifndef ENCORE_ENGINE_TOKENIZER_NORMALIZER_H_
#define ENCORE_ENGINE_TOKENIZER_NORMALIZER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "encore/status.h"
#include "engine/tokenizer/aligned_writer.h"
#include "engine/tokenizer/pattern.h"
#include "engine/tokenizer/text_buffer.h"

namespace encore::inline v0_1::internal {

// One normalizer. Immutable.
class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  // Appends the normalized text to `out`, which was cleared for the same wish for origins. `marks`
  // is empty before and after. Throws std::bad_alloc.
  virtual void Apply(TextView text, MarkRun* marks, TextBuffer* out) const = 0;
  // At most how many times as many bytes a text has afterwards.
  virtual double Growth() const = 0;
};

struct BertNormalizerSettings {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};
std::unique_ptr<const NormalizerStep> MakeBertNormalizer(const BertNormalizerSettings& settings);

// Each character's lower case, whatever its neighbours are; removal of characters that are marks.
std::unique_ptr<const NormalizerStep> MakeLowercase();
std::unique_ptr<const NormalizerStep> MakeStripAccents();

// unicode_forms.cc: NFD where nothing is set.
struct UnicodeFormSettings {
  bool compatibility = false;  // NFKC, NFKD
  bool compose = false;        // NFC, NFKC
};
std::unique_ptr<const NormalizerStep> MakeUnicodeForm(const UnicodeFormSettings& settings);

// Every match becomes `content`; `content` in front of a text that is not
// empty; white space at the ends goes.
std::unique_ptr<const NormalizerStep> MakeReplace(Pattern pattern, std::string content);
std::unique_ptr<const NormalizerStep> MakePrepend(std::string content);
std::unique_ptr<const NormalizerStep> MakeStrip(bool left, bool right);

// precompiled.cc: sentencepiece's map of characters, the bytes that its model has. kCorruptData for
// bytes that are none; sentences start with `where`.
Result<std::unique_ptr<const NormalizerStep>> MakePrecompiled(std::string_view charsmap,
                                                              const std::string& where);

// Steps one after another. Immutable.
class Normalizer {
 public:
  // What a call works with; reused from call to call.
  struct Scratch {
    TextBuffer buffers[2];
    MarkRun marks;
    size_t memory_bytes() const {
      return buffers[0].memory_bytes() + buffers[1].memory_bytes() + marks.memory_bytes();
    }
  };

  void Append(std::unique_ptr<const NormalizerStep> step) { steps_.push_back(std::move(step)); }
  void Prepend(std::unique_ptr<const NormalizerStep> step) {
    steps_.insert(steps_.begin(), std::move(step));
  }

  // The normalized text: in `scratch`, or `text` itself if there are no steps. With origins if
  // `text` has them. Throws std::bad_alloc.
  TextView Apply(TextView text, Scratch* scratch) const;
  // Of all steps.
  double Growth() const;

 private:
  std::vector<std::unique_ptr<const NormalizerStep>> steps_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TOKENIZER_NORMALIZER_H_
