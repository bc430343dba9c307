// SPDX-License-Identifier: Apache-2.0
//
// Aligned memory from the C library, and large pages where the system has them (Linux).

#include "engine/base/aligned_buffer.h"

#include <algorithm>
#include <cstdlib>

#if defined(_WIN32)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace encore::inline v0_1::internal {

void* AllocateAligned(size_t bytes) {
  const size_t size = std::max(bytes, kMemoryAlignment);
  const size_t alignment = size >= kHugePageBytes ? kHugePageBytes : kMemoryAlignment;
#if defined(_WIN32)
  return _aligned_malloc(size, alignment);
#else
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, size) != 0) return nullptr;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Kernels without large pages refuse, which does no harm. Whole large pages only: memory behind
  // the end belongs to others.
  if (size >= kHugePageBytes)
    (void)madvise(memory, size / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
#endif
  return memory;
#endif
}

void FreeAligned(void* memory) {
#if defined(_WIN32)
  _aligned_free(memory);
#else
  std::free(memory);
#endif
}

}  // namespace encore::internal
