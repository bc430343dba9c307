// SPDX-License-Identifier: Apache-2.0
//
// The module's own code is none: the linker takes what CMakeLists.txt exports from the libraries.

#include "encore/c_api.h"

static_assert(sizeof(encore_text) == 8 && offsetof(encore_encode_options, normalize) == 28 &&
                  sizeof(encore_encode_options) == 56,
              "encore.js writes these structs");
