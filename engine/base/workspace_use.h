// SPDX-License-Identifier: Apache-2.0
//
// WorkspaceUse: one call's use of a workspace or a scratch, which no other call may share.

#ifndef ENCORE_ENGINE_BASE_WORKSPACE_USE_H_
#define ENCORE_ENGINE_BASE_WORKSPACE_USE_H_

#include <atomic>
#include <string>

#include "encore/scratch.h"
#include "encore/status.h"
#include "encore/workspace.h"

namespace encore::inline v0_1::internal {

class WorkspaceUse {
 public:
  explicit WorkspaceUse(const Workspace& workspace)
      : WorkspaceUse(&workspace.in_use_, "the workspace") {}
  explicit WorkspaceUse(Scratch& scratch) : WorkspaceUse(&scratch.in_use_, "the scratch") {}
  WorkspaceUse(const WorkspaceUse&) = delete;
  WorkspaceUse& operator=(const WorkspaceUse&) = delete;
  ~WorkspaceUse() {
    if (alone_) in_use_->store(false, std::memory_order_release);
  }

  // kInvalidArgument if another call uses it.
  Status status() const {
    if (alone_) return {};
    return InvalidArgument(std::string(name_) +
                           " is in use by another call; wanted one for each call at the same time");
  }

 private:
  WorkspaceUse(std::atomic<bool>* in_use, const char* name)
      : in_use_(in_use), name_(name), alone_(!in_use->exchange(true, std::memory_order_acquire)) {}

  std::atomic<bool>* const in_use_;
  const char* const name_;
  const bool alone_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_WORKSPACE_USE_H_
