// SPDX-License-Identifier: Apache-2.0
//
// How far a command on texts has come, on standard error where that is a terminal, and the line
// that sums it up. Not here: the bar (verify_progress.h).

#ifndef ENCORE_TOOLS_ENCORE_TEXT_PROGRESS_H_
#define ENCORE_TOOLS_ENCORE_TEXT_PROGRESS_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "encore/text_encoder.h"
#include "tools/encore/text_chunks.h"
#include "tools/encore/verify_progress.h"

namespace encore::tool {

class TextProgress {
 public:
  explicit TextProgress(const TextChunks& input);

  // These texts are done.
  void Add(const TextCounts& counts);
  // Takes the bar away.
  void Clear();

  size_t texts() const { return texts_; }
  // "1 000 texts, 25 000 tokens in 1.2 s (20 833 tokens/s); 3 texts cut to 256 tokens".
  std::string Summary(size_t max_length) const;

 private:
  const TextChunks& input_;
  bool visible_;
  Progress bar_;  // of a file, whose size is known
  size_t drawn_bytes_ = 0;
  size_t texts_ = 0;
  size_t tokens_ = 0;
  size_t texts_cut_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_TEXT_PROGRESS_H_
