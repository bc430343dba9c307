// SPDX-License-Identifier: Apache-2.0
//
// The library's edge, where nothing may throw: a failed allocation becomes a Status.
//
//   return Guarded("the vectors", [&]() -> Result<Embeddings> { ... });

#ifndef ENCORE_ENGINE_BASE_GUARDED_H_
#define ENCORE_ENGINE_BASE_GUARDED_H_

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "encore/status.h"
#include "engine/base/out_of_memory.h"

namespace encore::inline v0_1::internal {

// "no memory for `what`"; "out of memory" if there is none for that sentence either.
inline Status NoMemoryFor(const char* what) noexcept {
  try {
    return Status(ErrorCode::kOutOfMemory, std::string("no memory for ") + what);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

// f(), a Status or Result, whose failed allocations become NoMemoryFor(what). A vector that is
// asked for more elements than it can ever hold throws length_error. Whatever else is thrown comes
// from the system, which for instance cannot express a path in its own encoding: kIo.
template <class F>
auto Guarded(const char* what, F&& f) -> decltype(f()) {
  try {
    try {
      return std::forward<F>(f)();
    } catch (const std::bad_alloc&) {
      return NoMemoryFor(what);
    } catch (const std::length_error&) {
      return NoMemoryFor(what);
    } catch (const std::exception& error) {
      return Status(ErrorCode::kIo, std::string(what) + ": " + error.what());
    }
  } catch (const std::bad_alloc&) {  // by the last sentence
    return OutOfMemory();
  }
}

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_GUARDED_H_
