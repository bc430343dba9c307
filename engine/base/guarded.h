// SPDX-License-Identifier: Apache-2.0
//
// The library's edge, where nothing may throw: a failed allocation becomes a Status.
//
//   return Guarded("the vectors", [&]() -> Result<Embeddings> { ... });

#ifndef ENCORE_ENGINE_BASE_GUARDED_H_
#define ENCORE_ENGINE_BASE_GUARDED_H_

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "encore/status.h"

namespace encore::inline v0_1::internal {

// Does not allocate: the text fits the small-string buffer.
inline Status OutOfMemory() { return Status(ErrorCode::kOutOfMemory, "out of memory"); }

// "no memory for `what`"; "out of memory" if there is none for that sentence either.
inline Status NoMemoryFor(std::string_view what) noexcept {
  try {
    return Status(ErrorCode::kOutOfMemory, "no memory for " + std::string(what));
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

// f(), a Status or Result, whose failed allocations become NoMemoryFor(what). A vector throws
// length_error for more elements than it can ever hold. Other exceptions are defects, or a host's
// parallel_for throws them: they reach the caller. Files have their own guard
// (platform/file_error.h).
template <class F>
auto Guarded(std::string_view what, const F& f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return NoMemoryFor(what);
  } catch (const std::length_error&) {
    return NoMemoryFor(what);
  }
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_GUARDED_H_
