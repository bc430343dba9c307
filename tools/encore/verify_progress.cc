// SPDX-License-Identifier: Apache-2.0
//
// Draws the progress bar.

#include "tools/encore/verify_progress.h"

#include <algorithm>
#include <cstdio>

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
  constexpr int kWidth = 30;
  const double all = std::clamp((done_ + work_ * share) / total_, 0.0, 1.0);
  const int full = static_cast<int>(all * kWidth);
  std::fprintf(stderr, "\r\x1b[K[%s%s] %3.0f %%  %s", std::string(full, '#').c_str(),
               std::string(kWidth - full, '.').c_str(), 100 * all, name_.c_str());
  std::fflush(stderr);
}

void Progress::Clear() {
  if (visible_) std::fprintf(stderr, "\r\x1b[K");
}

}  // namespace encore::tool
