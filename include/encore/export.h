// SPDX-License-Identifier: Apache-2.0
//
// ENCORE_API marks the functions and classes that a shared libencore exports; everything without
// it is built with hidden visibility. Of a static libencore everything is hidden, so that each of
// several shared libraries with encore inside uses its own. ENCORE_LOCAL hides a member of an
// exported class. Holds only these two macros.
//
// ENCORE_SHARED comes from the build (the CMake target and the pkg-config file define it) when
// encore is a shared library, ENCORE_BUILDING only while encore itself is compiled. Windows needs
// both to tell export from import; ELF and Mach-O need the first only.

#ifndef ENCORE_EXPORT_H_
#define ENCORE_EXPORT_H_

#if !defined(ENCORE_SHARED)
#define ENCORE_API
#elif defined(_WIN32)
#if defined(ENCORE_BUILDING)
#define ENCORE_API __declspec(dllexport)
#else
#define ENCORE_API __declspec(dllimport)
#endif
#elif defined(__GNUC__) || defined(__clang__)
#define ENCORE_API __attribute__((visibility("default")))
#else
#define ENCORE_API
#endif

#if !defined(_WIN32) && (defined(__GNUC__) || defined(__clang__))
#define ENCORE_LOCAL __attribute__((visibility("hidden")))
#else
#define ENCORE_LOCAL
#endif

#endif  // ENCORE_EXPORT_H_
