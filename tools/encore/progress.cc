// SPDX-License-Identifier: Apache-2.0
//
// Draws progress and sums up.

#include "tools/encore/progress.h"

#include <algorithm>
#include <cstdio>

#include "tools/encore/terminal.h"
#include "tools/encore/text.h"

namespace encore::tool {
namespace {

// Until the speed is known.
constexpr size_t kFirstTexts = 64;
// Fewer would leave threads without work at the end of each step.
constexpr int kFewestTexts = 32;

}  // namespace

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
      bar_(StderrIsTerminal(), static_cast<double>(input.size_bytes().value_or(0))),
      next_count_(kFirstTexts) {}

void TextProgress::Skip() {
  skipped_bytes_ = done_bytes_ = input_.bytes();
  bar_.Begin("", static_cast<double>(done_bytes_));
}

void TextProgress::Begin() {
  const Clock::time_point now = Clock::now();
  waited_ += std::chrono::duration<double>(now - changed_).count();
  changed_ = now;
  bar_.Begin(Line(), static_cast<double>(input_.bytes() - done_bytes_));
}

void TextProgress::Add(const TextCounts& counts) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - changed_).count();
  changed_ = now;
  seconds_ += seconds;
  texts_ += counts.tokens.size();
  texts_cut_ += counts.texts_cut;
  for (const size_t tokens : counts.tokens) tokens_ += tokens;
  done_bytes_ = input_.bytes();
  const double a_second = static_cast<double>(counts.tokens.size()) / std::max(seconds, 1e-3);
  next_count_ = static_cast<size_t>(
      std::clamp(a_second, double{kFewestTexts}, static_cast<double>(TextChunks::kMostTexts)));
}

std::string TextProgress::Line() const {
  std::string line = Counted(texts_, "text");
  if (texts_ == 0) return line;
  line += ", " + Grouped(static_cast<double>(texts_) / seconds_) + " texts/s";
  const double done = static_cast<double>(done_bytes_ - skipped_bytes_);
  if (!input_.size_bytes() || done == 0) return line;
  const double left = static_cast<double>(*input_.size_bytes()) - static_cast<double>(done_bytes_);
  return line + ", " + DurationText(std::max(left, 0.0) / done * seconds_) + " left";
}

std::string TextProgress::Summary(size_t max_length) const {
  constexpr double kShort = 0.1;  // seconds that nobody would ask about
  std::string text = Counted(texts_, "text") + ", " + Counted(tokens_, "token") + " in " +
                     Number(seconds_, 2) + " s";
  if (seconds_ > 0) {
    text += " (" + Grouped(static_cast<double>(texts_) / seconds_) + " texts/s, " +
            Grouped(static_cast<double>(tokens_) / seconds_) + " tokens/s)";
  }
  if (waited_ > kShort) text += ", " + Number(waited_, 2) + " s of waiting for the input";
  text += "; ";
  if (texts_cut_ == 0) return text + "no text cut";
  return text + Counted(texts_cut_, "text") + " cut to " + Counted(max_length, "token");
}

}  // namespace encore::tool
