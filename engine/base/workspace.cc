// SPDX-License-Identifier: Apache-2.0
//
// Creation and growth of a workspace.

#include "encore/workspace.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "engine/base/aligned_buffer.h"
#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/base/touch_pages.h"

namespace encore::inline v0_1 {

static_assert(Workspace::kAlignment == internal::kMemoryAlignment);

namespace {

// Without this the first short call would take half as long again as the next ones. Further pages
// are left to the threads of the first call, so that each is on the NUMA node of the thread that
// uses it.
constexpr size_t kTouchedBytes = size_t{32} << 20;

}  // namespace

Result<Workspace> Workspace::Create(size_t bytes) {
  return internal::Guarded("a workspace", [&]() -> Result<Workspace> {
    Workspace workspace;
    if (bytes == 0) return workspace;
    workspace.owned_.reset(internal::AllocateAligned(bytes));
    if (!workspace.owned_) {
      return Status(ErrorCode::kOutOfMemory,
                    "a workspace needs " + std::to_string(bytes) + " bytes, which cannot be had");
    }
    workspace.data_ = workspace.owned_.get();
    workspace.bytes_ = bytes;
    internal::WritePages(workspace.data_, std::min(bytes, kTouchedBytes));
    return workspace;
  });
}

Result<Workspace> Workspace::Wrap(void* memory, size_t bytes) {
  return internal::Guarded("a workspace", [&]() -> Result<Workspace> {
    if (memory == nullptr && bytes > 0) {
      return InvalidArgument("a workspace of " + std::to_string(bytes) +
                             " bytes was given as a null pointer");
    }
    const size_t off = reinterpret_cast<uintptr_t>(memory) % kAlignment;
    if (off != 0) {
      return InvalidArgument("a workspace's memory must be aligned to " +
                             std::to_string(kAlignment) + " bytes; the address given is " +
                             std::to_string(off) + " bytes past such a boundary");
    }
    Workspace workspace;
    workspace.data_ = memory;
    workspace.bytes_ = bytes;
    return workspace;
  });
}

Status Workspace::Reserve(size_t bytes) {
  return internal::Guarded("a workspace", [&]() -> Status {
    if (bytes <= bytes_) return {};
    if (data_ != nullptr && !owned_) {
      return InvalidArgument("a workspace around the caller's memory has " +
                             std::to_string(bytes_) + " bytes and cannot grow; wanted " +
                             std::to_string(bytes));
    }
    ENCORE_ASSIGN_OR_RETURN(Workspace larger, Create(bytes));
    *this = std::move(larger);
    return {};
  });
}

void Workspace::Free::operator()(void* memory) const { internal::FreeAligned(memory); }

}  // namespace encore
