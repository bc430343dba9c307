// SPDX-License-Identifier: Apache-2.0
//
// Says in one sentence that encore's C++ headers need C++20, and stops the compiler there; the C
// interface (c_api.h) needs no more than C99. Holds nothing else.

#ifndef ENCORE_LANGUAGE_H_
#define ENCORE_LANGUAGE_H_

// GCC 10 and Clang 10 call their C++20 by the first number.
#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201709L
#error "encore's C++ headers need C++20: compile with -std=c++20 (MSVC: /std:c++20) or newer"
#include <encore needs C++20>  // no such file, so that nothing else is said
#endif

#endif  // ENCORE_LANGUAGE_H_
