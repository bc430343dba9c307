// SPDX-License-Identifier: Apache-2.0
//
// Scratch: what a text model's calls work in, where a thread wants its own.

#ifndef ENCORE_SCRATCH_H_
#define ENCORE_SCRATCH_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "encore/export.h"

namespace encore::inline v0_1 {

namespace internal {
struct CallScratch;
class WorkspaceUse;
}  // namespace internal

// The memory of a call that one call at a time may scribble on, of any models in turn. Unlike a
// Workspace it grows to what the largest call needed, the tokenizer's memory included; it keeps
// that until it is destroyed or assigned to. No other call takes it; a call with a scratch that
// another call is using is refused with kInvalidArgument. Contents between calls mean nothing.
class ENCORE_API Scratch {
 public:
  Scratch();
  ~Scratch();
  // Neither may be in use. The moved-from scratch has no memory.
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&& other) noexcept;

  size_t size_bytes() const;  // between calls

 private:
  friend class internal::WorkspaceUse;
  friend struct internal::CallScratch;
  std::unique_ptr<internal::CallScratch> parts_;  // null: no memory
  std::atomic<bool> in_use_{false};               // it does not move
};

}  // namespace encore

#endif  // ENCORE_SCRATCH_H_
