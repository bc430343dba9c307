// SPDX-License-Identifier: Apache-2.0
//
// The two ways to get a workspace, and its growth.

#include "encore/workspace.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "engine/base/aligned_memory.h"
#include "engine/base/out_of_memory.h"

namespace encore::inline v0_1 {

static_assert(Workspace::kAlignment == internal::kMemoryAlignment);

namespace {

// Systems give memory when it is first written to, page by page: without this the first call would
// take half as long again as the next ones. Beyond some size calls take so long that it does not
// show, and memory that is never used should not be had.
void Touch(volatile char* memory, size_t bytes) {
  constexpr size_t kPage = 4096;
  constexpr size_t kMost = size_t{256} << 20;
  for (size_t i = 0; i < std::min(bytes, kMost); i += kPage) memory[i] = 0;
}

}  // namespace

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
  Touch(static_cast<volatile char*>(workspace.data_), bytes);
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

Status Workspace::Reserve(size_t bytes) try {
  if (bytes <= bytes_) return {};
  if (data_ != nullptr && !owned_) {
    return InvalidArgument("a workspace around the caller's memory has " + std::to_string(bytes_) +
                           " bytes and cannot grow; wanted " + std::to_string(bytes));
  }
  Result<Workspace> larger = Create(bytes);
  if (!larger.ok()) return larger.status();
  *this = *std::move(larger);
  return {};
} catch (const std::bad_alloc&) {
  return internal::OutOfMemory();
}

void Workspace::Free::operator()(void* memory) const { internal::FreeAligned(memory); }

}  // namespace encore
