// SPDX-License-Identifier: Apache-2.0
//
// Asks for the cache line at an address ahead of its use: only a hint, any address will do.

#ifndef ENCORE_ENGINE_BASE_PREFETCH_H_
#define ENCORE_ENGINE_BASE_PREFETCH_H_

#if defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
#include <xmmintrin.h>
#endif

namespace encore::inline v0_1::internal {

#if defined(__GNUC__) || defined(__clang__)
inline void PrefetchL1(const void* line) { __builtin_prefetch(line, 0 /* read */, 3); }
inline void PrefetchL2(const void* line) { __builtin_prefetch(line, 0 /* read */, 2); }
inline void PrefetchWrite(const void* line) { __builtin_prefetch(line, 1 /* write */, 3); }
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
inline void PrefetchL1(const void* line) {
  _mm_prefetch(static_cast<const char*>(line), _MM_HINT_T0);
}
inline void PrefetchL2(const void* line) {
  _mm_prefetch(static_cast<const char*>(line), _MM_HINT_T1);
}
inline void PrefetchWrite(const void* line) { PrefetchL1(line); }
#else
inline void PrefetchL1(const void*) {}
inline void PrefetchL2(const void*) {}
inline void PrefetchWrite(const void*) {}
#endif

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_PREFETCH_H_
