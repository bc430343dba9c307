// SPDX-License-Identifier: Apache-2.0
//
// WorkspaceUse: one call's use of a workspace, which no other call may share.

#ifndef ENCORE_ENGINE_BASE_WORKSPACE_USE_H_
#define ENCORE_ENGINE_BASE_WORKSPACE_USE_H_

#include <atomic>

#include "encore/status.h"
#include "encore/workspace.h"

namespace encore::inline v0_1::internal {

class WorkspaceUse {
 public:
  explicit WorkspaceUse(const Workspace& workspace)
      : workspace_(workspace),
        alone_(!workspace.in_use_.exchange(true, std::memory_order_acquire)) {}
  WorkspaceUse(const WorkspaceUse&) = delete;
  WorkspaceUse& operator=(const WorkspaceUse&) = delete;
  ~WorkspaceUse() {
    if (alone_) workspace_.in_use_.store(false, std::memory_order_release);
  }

  // kInvalidArgument if another call uses it.
  Status status() const {
    if (alone_) return {};
    return InvalidArgument(
        "the workspace is in use by another call; wanted one for each call at the same time");
  }

 private:
  const Workspace& workspace_;
  const bool alone_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_WORKSPACE_USE_H_
