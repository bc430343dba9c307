// SPDX-License-Identifier: Apache-2.0
//
// The memory of a call, kept for the next one: a short text must not wait for fresh pages. Not
// here: what lies in it.

#ifndef ENCORE_ENGINE_TEXT_SCRATCH_H_
#define ENCORE_ENGINE_TEXT_SCRATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "encore/encoder.h"
#include "encore/status.h"
#include "encore/workspace.h"
#include "engine/text/token_store.h"

namespace encore::inline v0_1::internal {

// Floats that grow and never shrink; uninitialized. One thread at a time.
class FloatBuffer {
 public:
  // Memory for count values of type T (float or double). kOutOfMemory.
  template <typename T>
  Result<T*> Get(size_t count) {
    const Status status = Reserve(count, sizeof(T));
    if (!status.ok()) return status;
    return static_cast<T*>(memory_.data());
  }
  size_t size_bytes() const { return memory_.size_bytes(); }

 private:
  Status Reserve(size_t count, size_t element);
  Workspace memory_;
};

// Everything that one call uses.
struct Scratch {
  TokenStore tokens;
  std::vector<size_t> order;  // of texts, as computed
  // One batch, packed.
  std::vector<int32_t> ids;
  std::vector<uint8_t> type_ids;
  std::vector<size_t> starts;
  Workspace workspace;      // of the encoder,
  BatchLimits limits = {};  // for any batch within these,
  int threads = 0;          // on an executor of so many threads
  FloatBuffer x;            // [tokens, d_model]
  FloatBuffer hidden;       // [sequences, d_model], where not all rows are wanted
  FloatBuffer pooled;       // [sequences, width]
  FloatBuffer projected;    // [sequences, width] after a dense layer
  FloatBuffer sums;         // doubles of pooling

  size_t size_bytes() const;
};

// Idle scratch, for any number of threads.
class ScratchPool {
 public:
  // Takes one, or makes one; gives it back when destroyed, unless a lot is idle already.
  class Lease {
   public:
    explicit Lease(ScratchPool* pool);
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease();
    Scratch* operator->() const { return scratch_.get(); }
    Scratch& operator*() const { return *scratch_; }

   private:
    ScratchPool* pool_;
    std::unique_ptr<Scratch> scratch_;
  };

 private:
  // Bytes that may lie idle: two threads' batches of a base model.
  static constexpr size_t kMaxIdleBytes = size_t{128} << 20;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> idle_;
  size_t idle_bytes_ = 0;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_SCRATCH_H_
