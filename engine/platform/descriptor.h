// SPDX-License-Identifier: Apache-2.0
//
// Files by their descriptors, where the system has them (ENCORE_HAVE_DESCRIPTORS): its headers, and
// a descriptor that is closed when it goes out of scope, whatever is thrown meanwhile.

#ifndef ENCORE_ENGINE_PLATFORM_DESCRIPTOR_H_
#define ENCORE_ENGINE_PLATFORM_DESCRIPTOR_H_

#if defined(__unix__) || defined(__APPLE__)
#define ENCORE_HAVE_DESCRIPTORS 1
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
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
#else
#define ENCORE_HAVE_DESCRIPTORS 0
#endif

#endif  // ENCORE_ENGINE_PLATFORM_DESCRIPTOR_H_
