// SPDX-License-Identifier: Apache-2.0
//
// Systems provide memory page by page, at its first use. These use it before it is needed.

#ifndef ENCORE_ENGINE_BASE_TOUCH_PAGES_H_
#define ENCORE_ENGINE_BASE_TOUCH_PAGES_H_

#include <cstddef>
#include <span>

namespace encore::inline v0_1::internal {

inline constexpr size_t kPageBytes = 4096;  // or less than a page, which does no harm

// Writes to each page: what is there is lost.
inline void WritePages(void* memory, size_t bytes) {
  auto* const at = static_cast<volatile char*>(memory);
  for (size_t i = 0; i < bytes; i += kPageBytes) at[i] = 0;
}

// Reads from each page.
inline void ReadPages(std::span<const std::byte> memory) {
  const volatile std::byte* const at = memory.data();
  for (size_t i = 0; i < memory.size(); i += kPageBytes) (void)at[i];
  if (!memory.empty()) (void)at[memory.size() - 1];
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_TOUCH_PAGES_H_
