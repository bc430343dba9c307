// SPDX-License-Identifier: Apache-2.0
//
// How far a command has come, on standard error where that is a terminal; nothing else anywhere.

#ifndef ENCORE_TOOLS_ENCORE_PROGRESS_H_
#define ENCORE_TOOLS_ENCORE_PROGRESS_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "encore/text_encoder.h"
#include "tools/encore/stop_signal.h"
#include "tools/encore/text_input.h"

namespace encore::tool {

class Progress {
 public:
  // `total` is the work of all steps together, in any unit that steps share; 0 is unknown, and
  // names appear without a bar.
  Progress(bool visible, double total) : visible_(visible), total_(total) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Clear(); }

  // A step of this much work begins, and the one before is done.
  void Begin(const std::string& name, double work);
  // This share of the step is done, in [0, 1]; `name`, if given, is what it does now. Draws ten
  // times a second at most.
  void Advance(double share, const std::string& name = "");
  // Takes the bar away, so that other text may follow.
  void Clear();

 private:
  void Draw(double share);

  bool visible_;
  double total_;
  double done_ = 0;
  double work_ = 0;
  std::string name_;
  std::chrono::steady_clock::time_point drawn_{};
};

// Of a command on texts, with the line that sums it up. Speed is that of computing: time spent
// waiting for the input is told apart.
class TextProgress {
 public:
  explicit TextProgress(const TextChunks& input);

  // Reads the texts up to the input's end or a stop signal, some at a time. compute(texts) is a
  // Result of something with counts, which `use` gets while the input has these texts.
  template <typename Compute, typename Use>
  void ForAll(TextChunks* input, const Compute& compute, const Use& use) {
    while (input->Next(next_count_) && !StopRequested()) {
      Begin();
      const auto found = compute(input->texts());
      input->Check(found.status());
      use(*found);
      Add(found->counts);
    }
    bar_.Clear();
  }

  // What has been read of the input was done by an earlier run.
  void Skip();
  size_t texts() const { return texts_; }
  // "1 000 texts, 25 000 tokens in 1.2 s (833 texts/s, 20 833 tokens/s); 3 texts cut to 256
  // tokens".
  std::string Summary(size_t max_length) const;

 private:
  using Clock = std::chrono::steady_clock;

  // Texts have been read, and computing begins.
  void Begin();
  // These texts are done.
  void Add(const TextCounts& counts);
  // "1 000 texts, 833 texts/s, 20 s left".
  std::string Line() const;

  const TextChunks& input_;
  Progress bar_;
  // So many texts, that they take about a second: then the line moves, and Ctrl-C is heard.
  size_t next_count_;
  size_t skipped_bytes_ = 0;
  size_t done_bytes_ = 0;  // of the input, skipped ones included
  size_t texts_ = 0;
  size_t tokens_ = 0;
  size_t texts_cut_ = 0;
  double seconds_ = 0;                        // of computing
  double waited_ = 0;                         // for the input
  Clock::time_point changed_ = Clock::now();  // from one to the other
};

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_PROGRESS_H_
