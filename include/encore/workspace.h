// SPDX-License-Identifier: Apache-2.0
//
// Scratch memory, sized up front and owned by the caller.

#ifndef ENCORE_WORKSPACE_H_
#define ENCORE_WORKSPACE_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "encore/export.h"
#include "encore/status.h"

namespace encore::inline v0_1 {

namespace internal {
class WorkspaceUse;
}

// A block of memory that one call at a time may scribble on: give every concurrent caller its own.
// A call with a workspace that another call is using is refused with kInvalidArgument (two
// workspaces around the same memory of the caller's are not told apart). Contents between calls
// mean nothing and need not be kept.
class ENCORE_API Workspace {
 public:
  static constexpr size_t kAlignment = 64;

  Workspace() = default;  // no memory: enough for operations that need 0 bytes
  // The moved-from workspace has no memory.
  Workspace(Workspace&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        owned_(std::move(other.owned_)) {}
  Workspace& operator=(Workspace&& other) noexcept {
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    owned_ = std::move(other.owned_);
    return *this;
  }
  // Allocates, and touches the first 32 MiB; what is beyond is left to the threads of the first
  // call that needs it. kOutOfMemory if it cannot be had.
  static Result<Workspace> Create(size_t bytes);
  // Uses the caller's memory, which must outlive the workspace; kInvalidArgument if it is null with
  // bytes > 0 or not aligned to kAlignment.
  static Result<Workspace> Wrap(void* memory, size_t bytes);

  // Makes it at least this large: does nothing if it is, else takes new memory as Create does.
  // kInvalidArgument for memory of the caller's (Wrap), which cannot grow; kOutOfMemory. The
  // workspace is as before then.
  Status Reserve(size_t bytes);

  void* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }

 private:
  struct ENCORE_API Free {
    void operator()(void* memory) const;
  };
  friend class internal::WorkspaceUse;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  mutable std::atomic<bool> in_use_{false};  // it does not move
  std::unique_ptr<void, Free> owned_;
};

}  // namespace encore

#endif  // ENCORE_WORKSPACE_H_
