# SPDX-License-Identifier: Apache-2.0
#
# A toolchain file: builds for 64-bit ARM on another machine, and runs what it built, tests among
# it, under an emulator. The compiler is Debian's cross GCC or, with -DCMAKE_CXX_COMPILER=clang++-19
# and its like, that Clang with the cross GCC's libraries. Not for native builds.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

if(CMAKE_CXX_COMPILER MATCHES "clang")
  string(REPLACE "clang++" "clang" CMAKE_C_COMPILER "${CMAKE_CXX_COMPILER}")
  set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
  set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
  # libstdc++ 12's std::stable_sort uses what its own headers declare deprecated, and Clang tells
  # whoever calls it.
  set(CMAKE_CXX_FLAGS_INIT -Wno-deprecated-declarations)
else()
  set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
  set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
endif()

# What is built is run where it was built: it finds the other machine's libraries by itself.
set(encore_sysroot_libraries /usr/aarch64-linux-gnu/lib)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath,${encore_sysroot_libraries} \
-Wl,--dynamic-linker,${encore_sysroot_libraries}/ld-linux-aarch64.so.1")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
