// SPDX-License-Identifier: Apache-2.0
//
// `count` things in `parts` nearly equal ranges.

#ifndef ENCORE_ENGINE_BASE_EVEN_SPLIT_H_
#define ENCORE_ENGINE_BASE_EVEN_SPLIT_H_

#include <cstddef>

namespace encore::inline v0_1::internal {

// Range i is [begin(i), begin(i + 1)).
class EvenSplit {
 public:
  EvenSplit() = default;
  EvenSplit(size_t things, size_t ranges) : count(things), parts(ranges) {
    if (parts == 1) {
      base_ = count;
    } else if (parts == 2) {  // no division, which shows beside heads of short sequences
      base_ = count / 2;
      extra_ = count % 2;
    } else if (parts != 0) {
      base_ = count / parts;
      extra_ = count - base_ * parts;
    }
  }
  size_t begin(size_t i) const { return i * base_ + (i < extra_ ? i : extra_); }

  size_t count = 0;
  size_t parts = 0;

 private:
  size_t base_ = 0;
  size_t extra_ = 0;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_EVEN_SPLIT_H_
