# SPDX-License-Identifier: Apache-2.0
#
# Libraries of headers alone, from ENCORE_CROSS_HEADERS (tools/cross.sh): CMake's packages of them
# would add this machine's folder of headers, where another system's C library finds the wrong ones.

foreach(name IN ITEMS nlohmann_json::nlohmann_json CLI11::CLI11)
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${name} SYSTEM INTERFACE "${ENCORE_CROSS_HEADERS}")
endforeach()

# CMake's without -emit-pch, which zig says itself for a header and Clang takes once.
set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH -Xclang -include -Xclang <PCH_HEADER> -x c++-header)

# What is not optimised, zig would sanitize, and not link what that needs.
set(encore_options_of-O0 -fno-sanitize=undefined)
