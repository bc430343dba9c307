// SPDX-License-Identifier: Apache-2.0
//
// The Status for std::bad_alloc at the library's edge, where nothing may throw.

#ifndef ENCORE_ENGINE_BASE_OUT_OF_MEMORY_H_
#define ENCORE_ENGINE_BASE_OUT_OF_MEMORY_H_

#include "encore/status.h"

namespace encore::inline v0_1::internal {

// Needs no memory itself: every standard library keeps up to 15 characters within the string.
inline Status OutOfMemory() { return Status(ErrorCode::kOutOfMemory, "out of memory"); }

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_BASE_OUT_OF_MEMORY_H_
