// SPDX-License-Identifier: Apache-2.0
//
// The memory of a call, kept for the next one: a short text must not wait for fresh pages.

#ifndef ENCORE_ENGINE_TEXT_SCRATCH_H_
#define ENCORE_ENGINE_TEXT_SCRATCH_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
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
  size_t first_text = 0;      // of these, among the call's
  std::vector<size_t> order;  // of texts, as computed
  // One batch, packed.
  std::vector<int32_t> ids;
  std::vector<uint8_t> type_ids;
  std::vector<size_t> starts;
  std::vector<size_t> unseen;          // TokenBatch's
  OutputRows rows = OutputRows::kAll;  // that were computed of it
  Workspace workspace;                 // of the encoder,
  BatchLimits limits = {};             // for any batch within these,
  int threads = 0;                     // on an executor of so many threads
  FloatBuffer x;                       // [tokens, d_model]
  FloatBuffer hidden;                  // [sequences, d_model], where not all rows are wanted
  FloatBuffer pooled;                  // [sequences, width]
  FloatBuffer projected;               // [sequences, width] after a dense layer
  FloatBuffer gathered;                // [rows, d_model]: of late interaction, those that are kept
  FloatBuffer residual;                // the same, of its residual
  FloatBuffer sums;                    // doubles of pooling

  size_t size_bytes() const;
  size_t idle_bytes = 0;  // what the pool has counted for it
};

// Idle scratch, for any number of threads. There is no lock, which a child of fork() would inherit
// from a thread that it does not have.
class ScratchPool {
 public:
  ScratchPool() = default;
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;
  ~ScratchPool();

  // Gives a scratch back when it is destroyed, unless a lot is idle already.
  struct GiveBack {
    ScratchPool* pool;
    void operator()(Scratch* scratch) const { pool->Put(std::unique_ptr<Scratch>(scratch)); }
  };
  using Lease = std::unique_ptr<Scratch, GiveBack>;
  // Takes one, or makes one.
  Lease Take();

  // Bytes that may be idle: two threads' batches of a base model.
  static constexpr size_t kMaxIdleBytes = size_t{128} << 20;
  size_t idle_bytes() const { return idle_bytes_.load(std::memory_order_relaxed); }

 private:
  void Put(std::unique_ptr<Scratch> scratch);

  // One for each of as many threads as call at once; more of them make their own each time. The
  // first ones are taken first, as their memory is likely to be in caches.
  std::array<std::atomic<Scratch*>, 256> idle_ = {};
  // Of all of them; above it for a moment, while one is put there or taken.
  std::atomic<size_t> idle_bytes_{0};
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_SCRATCH_H_
