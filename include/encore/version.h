// SPDX-License-Identifier: Apache-2.0
//
// The version of encore: the one place where it is written down. CMake reads the three numbers
// from here, and the packages, `encore --version` and users' #if all follow. Holds nothing else.
// The macros are those of the header that a program was compiled with, Version() is the library's.
//
// Interfaces: until 1.0 a new minor version may change what C++ programs compile and link against,
// a new patch version changes neither; a shared library's name carries major and minor, so that a
// program finds the one that it was linked with. So do all symbols, by an inline namespace:
// encore::Encoder is encore::v0_1::Encoder to the linker, and two versions in one program do not
// take each other's functions. Do not declare encore's classes yourself: `namespace encore { class
// Encoder; }` is another class. tools/version_namespace.py writes the namespace by the numbers
// here. The C interface (c_api.h) only grows, and has a number of its own. Bits: a change of what
// encore.h promises is a new minor version at least.

#ifndef ENCORE_VERSION_H_
#define ENCORE_VERSION_H_

#include "encore/export.h"

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

#ifdef __cplusplus
namespace encore::inline v0_1 {

// "0.1.0", of the library that the program runs with. C has encore_version() (c_api.h).
ENCORE_API const char* Version();

}  // namespace encore
#endif

#endif  // ENCORE_VERSION_H_
