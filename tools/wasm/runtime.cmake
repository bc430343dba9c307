# SPDX-License-Identifier: Apache-2.0
#
# WebAssembly for WASI by PyPI's ziglang, whose sources are in ENCORE_ZIG_LIBRARY
# (tools/use_zig.sh): the options, and the C++ library. zig's own has neither exceptions nor files
# nor threads' types. This one, of the same sources, has them; no thread can be made, and
# std::thread says so.

include("${CMAKE_CURRENT_LIST_DIR}/../cmake/cross_headers.cmake")
enable_language(C)
set(CMAKE_EXECUTABLE_SUFFIX ".wasm")
# The library that programs need is not there yet.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_HAVE_LIBC_PTHREAD ON)  # for find_package(Threads): with no library of theirs

# Exceptions in their first form, which browsers have since 2022 and Node since 17.
string(APPEND CMAKE_C_FLAGS " -fwasm-exceptions -mexception-handling")
string(JOIN " " CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS}"
       -msimd128 -mexception-handling -fwasm-exceptions
       -U_LIBCPP_HAS_THREADS -D_LIBCPP_HAS_THREADS=1 -D_LIBCPP_HAS_THREAD_API_PTHREAD=1
       -U_LIBCPP_HAS_FILESYSTEM -D_LIBCPP_HAS_FILESYSTEM=1
       -D_WASI_EMULATED_SIGNAL)
string(APPEND CMAKE_EXE_LINKER_FLAGS " -lwasi-emulated-signal -Wl,-z,stack-size=1048576")

file(GLOB encore_libcxx_sources
     "${ENCORE_ZIG_LIBRARY}/libcxx/src/*.cpp"
     "${ENCORE_ZIG_LIBRARY}/libcxx/src/filesystem/*.cpp"
     "${ENCORE_ZIG_LIBRARY}/libcxx/src/ryu/*.cpp"
     "${ENCORE_ZIG_LIBRARY}/libcxxabi/src/*.cpp")
list(FILTER encore_libcxx_sources EXCLUDE REGEX "/(cxa_noexception|operations)\\.cpp$")
# libc++ takes every musl for Linux's. WASI's lacks two functions; where they fail so, files are
# copied through streams.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/filesystem_operations.cc" @ONLY CONTENT [[
#include <cerrno>
#include <cstddef>
#include <sys/types.h>
static int Refuse() { return errno = EINVAL, -1; }
static ssize_t copy_file_range(int, off_t*, int, off_t*, size_t, unsigned) { return Refuse(); }
extern "C" ssize_t sendfile(int, int, off_t*, size_t) { return Refuse(); }
#include <filesystem/operations.cpp>
]])
# What exceptions are thrown by, which LLVM has in another library, in assembly.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/exception_tag.c" @ONLY CONTENT [[
__asm__(".globl __cpp_exception\n.tagtype __cpp_exception i32\n__cpp_exception:\n");
]])
add_library(encore_wasm_runtime STATIC ${encore_libcxx_sources}
            "${CMAKE_BINARY_DIR}/filesystem_operations.cc"
            "${CMAKE_BINARY_DIR}/exception_tag.c" "${ENCORE_ZIG_LIBRARY}/libunwind/src/Unwind-wasm.c")
target_compile_features(encore_wasm_runtime PRIVATE cxx_std_23)
target_compile_definitions(encore_wasm_runtime PRIVATE
  _LIBCPP_BUILDING_LIBRARY _LIBCXXABI_BUILDING_LIBRARY LIBCXX_BUILDING_LIBCXXABI)
target_include_directories(encore_wasm_runtime PRIVATE
  "${ENCORE_ZIG_LIBRARY}/libcxx/src" "${ENCORE_ZIG_LIBRARY}/libcxx/libc"
  "${ENCORE_ZIG_LIBRARY}/libcxxabi/src" "${ENCORE_ZIG_LIBRARY}/libunwind/include")
target_compile_options(encore_wasm_runtime PRIVATE -w -O2 -fdeclspec)

link_libraries(encore_wasm_runtime)
