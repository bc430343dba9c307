// SPDX-License-Identifier: Apache-2.0
//
// Checks for encore's own bugs: a failed one prints its line and aborts. ENCORE_DCHECK does nothing
// with NDEBUG.

#ifndef ENCORE_ENGINE_BASE_CHECK_H_
#define ENCORE_ENGINE_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace encore::inline v0_1::internal {

[[noreturn]] inline void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: encore has a bug: (%s) does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace encore::internal

#define ENCORE_CHECK(condition)                                                        \
  do {                                                                                 \
    if (!(condition)) ::encore::internal::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)

#ifdef NDEBUG
// Still compiled, never evaluated: what only a check uses does not become "unused".
#define ENCORE_DCHECK(condition) \
  do {                           \
    (void)sizeof(!(condition));  \
  } while (false)
#else
#define ENCORE_DCHECK(condition) ENCORE_CHECK(condition)
#endif

#endif  // ENCORE_ENGINE_BASE_CHECK_H_
