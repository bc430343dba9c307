// SPDX-License-Identifier: Apache-2.0
//
// The two ways to get a workspace. Not here: what is put into one.

#include "encore/workspace.h"

#include <cstdint>
#include <new>
#include <string>

#include "engine/base/aligned_memory.h"
#include "engine/base/out_of_memory.h"

namespace encore {

static_assert(Workspace::kAlignment == internal::kMemoryAlignment);

Result<Workspace> Workspace::Create(size_t bytes) try {
  Workspace workspace;
  if (bytes == 0) return workspace;
  workspace.owned_.reset(internal::AllocateAligned(bytes));
  if (!workspace.owned_) {
    return Status(ErrorCode::kOutOfMemory,
                  "a workspace needs " + std::to_string(bytes) + " bytes, which cannot be had");
  }
  workspace.data_ = workspace.owned_.get();
  workspace.bytes_ = bytes;
  return workspace;
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

Result<Workspace> Workspace::Wrap(void* memory, size_t bytes) try {
  if (memory == nullptr && bytes > 0) {
    return InvalidArgument("a workspace of " + std::to_string(bytes) +
                           " bytes was given as a null pointer");
  }
  const size_t off = reinterpret_cast<uintptr_t>(memory) % kAlignment;
  if (off != 0) {
    return InvalidArgument("a workspace's memory must be aligned to " + std::to_string(kAlignment) +
                           " bytes; the address given is " + std::to_string(off) +
                           " bytes past such a boundary");
  }
  Workspace workspace;
  workspace.data_ = memory;
  workspace.bytes_ = bytes;
  return workspace;
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

void Workspace::Free::operator()(void* memory) const { internal::FreeAligned(memory); }

}  // namespace encore
