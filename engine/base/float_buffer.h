// SPDX-License-Identifier: Apache-2.0
//
// FloatBuffer: floats that grow and never shrink.

#ifndef ENCORE_ENGINE_BASE_FLOAT_BUFFER_H_
#define ENCORE_ENGINE_BASE_FLOAT_BUFFER_H_

#include <cstddef>

#include "encore/status.h"
#include "encore/workspace.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"

namespace encore::inline v0_1::internal {

// Uninitialized. One thread at a time.
class FloatBuffer {
 public:
  // Memory for count values of type T (float or double). kOutOfMemory.
  template <typename T>
  Result<T*> Get(size_t count) {
    size_t bytes = 0;
    if (!CheckedMul(count, sizeof(T), &bytes)) return OutOfMemory();
    if (bytes > memory_.size_bytes()) {
      // A little more than wanted, so that texts of slowly rising lengths do not take new memory
      // each.
      size_t more = 0;
      if (!CheckedAdd(bytes, bytes / 4, &more)) more = bytes;
      const Status status = memory_.Reserve(more);
      if (!status.ok()) return status;
    }
    return static_cast<T*>(memory_.data());
  }
  // Makes it at least so large, and no larger where it grows.
  Status Reserve(size_t bytes) { return memory_.Reserve(bytes); }
  const Workspace& memory() const { return memory_; }
  size_t size_bytes() const { return memory_.size_bytes(); }

 private:
  Workspace memory_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_FLOAT_BUFFER_H_
