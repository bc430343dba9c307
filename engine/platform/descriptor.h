// SPDX-License-Identifier: Apache-2.0
//
// A file descriptor that is closed when it goes out of scope, whatever is thrown meanwhile. Only
// where there is unistd.h.

#ifndef ENCORE_ENGINE_PLATFORM_DESCRIPTOR_H_
#define ENCORE_ENGINE_PLATFORM_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace encore::inline v0_1::internal {

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}  // -1 is nothing
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) (void)::close(descriptor_);
  }
  int get() const { return descriptor_; }
  int Release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_PLATFORM_DESCRIPTOR_H_
