// SPDX-License-Identifier: Apache-2.0
//
// The version of encore: the one place where it is written down. CMake reads the three numbers
// from here, and the packages, `encore --version` and users' #if all follow. Holds nothing else.

#ifndef ENCORE_VERSION_H_
#define ENCORE_VERSION_H_

#define ENCORE_VERSION_MAJOR 0
#define ENCORE_VERSION_MINOR 1
#define ENCORE_VERSION_PATCH 0

#define ENCORE_INTERNAL_STRINGIZE_(x) #x
#define ENCORE_INTERNAL_STRINGIZE(x) ENCORE_INTERNAL_STRINGIZE_(x)

// "0.1.0", a string literal.
#define ENCORE_VERSION_STRING                                                        \
  ENCORE_INTERNAL_STRINGIZE(ENCORE_VERSION_MAJOR)                                    \
  "." ENCORE_INTERNAL_STRINGIZE(ENCORE_VERSION_MINOR) "." ENCORE_INTERNAL_STRINGIZE( \
      ENCORE_VERSION_PATCH)

#endif  // ENCORE_VERSION_H_
