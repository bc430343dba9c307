// SPDX-License-Identifier: Apache-2.0
//
// Draws progress and sums up.

#include "tools/encore/text_progress.h"

#include <cstdio>

#include "tools/encore/terminal.h"
#include "tools/encore/text.h"

namespace encore::tool {

TextProgress::TextProgress(const TextChunks& input)
    : input_(input),
      visible_(StderrIsTerminal()),
      bar_(visible_ && input.size_bytes(), static_cast<double>(input.size_bytes().value_or(1))) {}

void TextProgress::Add(const TextCounts& counts) {
  texts_ += counts.tokens.size();
  texts_cut_ += counts.texts_cut;
  for (const size_t tokens : counts.tokens) tokens_ += tokens;
  if (!visible_) return;
  const std::string done = Counted(texts_, "text");
  if (input_.size_bytes()) {
    bar_.Begin(done, static_cast<double>(input_.bytes() - drawn_bytes_));
    bar_.Advance(1);
    drawn_bytes_ = input_.bytes();
  } else {
    std::fprintf(stderr, "\r\x1b[K%s", done.c_str());
    std::fflush(stderr);
  }
}

void TextProgress::Clear() {
  if (visible_) std::fprintf(stderr, "\r\x1b[K");
  visible_ = false;
}

std::string TextProgress::Summary(size_t max_length) const {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::string text = Counted(texts_, "text") + ", " + Counted(tokens_, "token") + " in " +
                     Number(seconds, 2) + " s";
  if (seconds > 0) text += " (" + Grouped(static_cast<double>(tokens_) / seconds) + " tokens/s)";
  text += "; ";
  if (texts_cut_ == 0) return text + "no text cut";
  return text + Counted(texts_cut_, "text") + " cut to " + Counted(max_length, "token");
}

}  // namespace encore::tool
