// SPDX-License-Identifier: Apache-2.0
//
// The library's version, as it was when the library was compiled.

#include "encore/version.h"

namespace encore::inline v0_1 {

const char* Version() { return ENCORE_VERSION_STRING; }

}  // namespace encore
