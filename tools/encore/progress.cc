// SPDX-License-Identifier: Apache-2.0
//
// Draws progress and sums up.

#include "tools/encore/progress.h"

#include <algorithm>
#include <cstdio>

#include "tools/encore/terminal.h"
#include "tools/encore/text.h"

namespace encore::tool {

void Progress::Begin(const std::string& name, double work) {
  done_ += work_;
  work_ = work;
  name_ = name;
  Draw(0);
}

void Progress::Advance(double share, const std::string& name) {
  if (!name.empty()) name_ = name;
  if (std::chrono::steady_clock::now() - drawn_ < std::chrono::milliseconds(100)) return;
  Draw(share);
}

void Progress::Draw(double share) {
  if (!visible_) return;
  drawn_ = std::chrono::steady_clock::now();
  std::fputs("\r\x1b[K", stderr);
  if (total_ > 0) {
    constexpr int kWidth = 30;
    const double all = std::clamp((done_ + work_ * share) / total_, 0.0, 1.0);
    const int full = static_cast<int>(all * kWidth);
    std::fprintf(stderr, "[%s%s] %3.0f %%  ", std::string(full, '#').c_str(),
                 std::string(kWidth - full, '.').c_str(), 100 * all);
  }
  std::fputs(name_.c_str(), stderr);
  std::fflush(stderr);
}

void Progress::Clear() {
  if (visible_) std::fprintf(stderr, "\r\x1b[K");
}

TextProgress::TextProgress(const TextChunks& input)
    : input_(input),
      bar_(StderrIsTerminal(), static_cast<double>(input.size_bytes().value_or(0))) {}

void TextProgress::Add(const TextCounts& counts) {
  texts_ += counts.tokens.size();
  texts_cut_ += counts.texts_cut;
  for (const size_t tokens : counts.tokens) tokens_ += tokens;
  bar_.Begin(Counted(texts_, "text"), static_cast<double>(input_.bytes() - drawn_bytes_));
  drawn_bytes_ = input_.bytes();
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
