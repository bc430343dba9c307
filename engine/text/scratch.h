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
#include <optional>
#include <string>
#include <vector>

#include "encore/encoder.h"
#include "encore/scratch.h"
#include "encore/status.h"
#include "encore/workspace.h"
#include "engine/base/float_buffer.h"
#include "engine/base/workspace_use.h"
#include "engine/models/embeddings.h"
#include "engine/text/token_store.h"

namespace encore::inline v0_1::internal {

// Bytes of a call's buffers of floats, one number for each.
struct FloatSizes {
  size_t x = 0, hidden = 0, pooled = 0, projected = 0, gathered = 0, residual = 0, sums = 0;
};

// How large a call's scratch gets.
struct ScratchSizes {
  size_t texts = 0;   // at once
  size_t tokens = 0;  // of a call
  BatchLimits batch = {};
  size_t type_ids = 0, unseen = 0, positions = 0, factors = 0;  // entries of the vectors
  size_t workspace = 0, narrow = 0, states = 0;                 // bytes
  FloatSizes floats = {};

  // Of CallScratch::size_bytes() all but the tokens and the object itself.
  size_t bytes() const;
};

// Everything that one call uses.
struct CallScratch {
  TokenStore tokens;
  size_t first_text = 0;      // of these, among the call's
  std::vector<size_t> order;  // of texts, as computed
  // One batch, packed.
  std::vector<int32_t> ids;
  std::vector<uint8_t> type_ids;
  std::vector<size_t> starts;
  std::vector<size_t> unseen;          // TokenBatch's
  OutputRows rows = OutputRows::kAll;  // that were computed of it
  Workspace workspace;                 // of the encoder
  BatchScratch model;
  FloatBuffer x;                // [tokens, d_model]
  FloatBuffer hidden;           // [sequences, d_model], where not all rows are wanted
  FloatBuffer pooled;           // [sequences, width]
  FloatBuffer projected;        // [sequences, width] after a dense layer
  FloatBuffer gathered;         // [rows, d_model]: of late interaction, those that are kept
  FloatBuffer residual;         // the same, of its residual
  FloatBuffer sums;             // doubles of pooling
  Tokens words;                 // of a text of sparse static embeddings,
  std::string joined;           // of its prompt and itself
  std::vector<uint8_t> pixels;  // of a batch of pictures, processed

  // Makes all of it at least so large, and touches its pages. kOutOfMemory.
  Status Prepare(const ScratchSizes& sizes);
  size_t size_bytes() const;
  size_t idle_bytes = 0;  // what the pool has counted for it

  // The caller's, made at its first use.
  static CallScratch* Of(Scratch* scratch);
};

// Idle scratch, for any number of threads. There is no lock, which a child of fork() would inherit
// from a thread that it does not have.
class ScratchPool {
 public:
  explicit ScratchPool(size_t max_idle_bytes) : max_idle_bytes_(max_idle_bytes) {}
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;
  ~ScratchPool() { Trim(); }

  // Gives a scratch back when it is destroyed, unless a lot is idle already.
  struct GiveBack {
    ScratchPool* pool;
    void operator()(CallScratch* scratch) const {
      pool->Put(std::unique_ptr<CallScratch>(scratch));
    }
  };
  using Lease = std::unique_ptr<CallScratch, GiveBack>;
  // Takes one, or makes one.
  Lease Take();
  // Gives back to the system what is idle.
  void Trim();

  size_t max_idle_bytes() const { return max_idle_bytes_; }
  size_t idle_bytes() const { return idle_bytes_.load(std::memory_order_relaxed); }

 private:
  void Put(std::unique_ptr<CallScratch> scratch);
  std::unique_ptr<CallScratch> TakeFrom(std::atomic<CallScratch*>* place);

  const size_t max_idle_bytes_;
  // One for each of as many threads as call at once; more of them make their own each time. The
  // first ones are taken first, as their memory is likely to be in caches.
  std::array<std::atomic<CallScratch*>, 256> idle_ = {};
  // Of all of them; above it for a moment, while one is put there or taken.
  std::atomic<size_t> idle_bytes_{0};
};

// The scratch of one call: the caller's own where that is not null, else one of the pool's.
class ScratchOfCall {
 public:
  ScratchOfCall(Scratch* own, ScratchPool* pool);
  // kInvalidArgument if another call uses the caller's; then there is none.
  Status status() const { return own_ ? own_->status() : Status(); }
  CallScratch* get() const { return scratch_; }
  CallScratch* operator->() const { return scratch_; }

 private:
  std::optional<WorkspaceUse> own_;
  ScratchPool::Lease pooled_;
  CallScratch* scratch_ = nullptr;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_TEXT_SCRATCH_H_
