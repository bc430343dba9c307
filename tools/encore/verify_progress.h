// SPDX-License-Identifier: Apache-2.0
//
// A progress bar on standard error, where that is a terminal; nothing else anywhere. Not here: what
// takes the time.

#ifndef ENCORE_TOOLS_ENCORE_VERIFY_PROGRESS_H_
#define ENCORE_TOOLS_ENCORE_VERIFY_PROGRESS_H_

#include <chrono>
#include <string>

namespace encore::tool {

class Progress {
 public:
  // `total` is the work of all steps together, in any unit that steps share.
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

}  // namespace encore::tool

#endif  // ENCORE_TOOLS_ENCORE_VERIFY_PROGRESS_H_
