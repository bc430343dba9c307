// SPDX-License-Identifier: Apache-2.0
//
// Raw memory with the alignment that the kernels want. Declared here and defined in
// engine/platform/aligned_memory.cc, because it needs system calls, which this folder has none of.

#ifndef ENCORE_ENGINE_BASE_ALIGNED_MEMORY_H_
#define ENCORE_ENGINE_BASE_ALIGNED_MEMORY_H_

#include <cstddef>

namespace encore::inline v0_1::internal {

// A cache line, and a whole AVX-512 vector.
inline constexpr size_t kMemoryAlignment = 64;
// A large page of x86-64 and of AArch64 with 4 KiB granules.
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// At least `bytes` bytes (64 if 0), aligned to kMemoryAlignment; from kHugePageBytes on aligned to
// that, and the system is asked for large pages, which spare the walks of page tables in big
// weights (4-6 % of a block's time). Contents are undefined. Null if there is no such memory; never
// throws.
void* AllocateAligned(size_t bytes);

// Takes what AllocateAligned gave, or null.
void FreeAligned(void* memory);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_ALIGNED_MEMORY_H_
