#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# For scripts that build with the Clang of PyPI's ziglang, and the C libraries in it, in the root of
# the tree: `source tools/use_zig.sh`, then
#
#   use_zig TARGET SYSTEM FOLDER
#
# writes the tools of zig's TARGET into FOLDER/zig, each one program as CMake wants it, and sets
# zig_options to CMake's options for them; SYSTEM is CMake's name. wasm32 is zig's wasm32-wasi with
# tools/wasm/runtime.cmake. Ends the script with the status 3 and a sentence where something cannot
# be had. quick_options compile for few SIMD targets and
# optimise little.

# Sets test (yes or no), shared (-shared or nothing), and suffix (-shared, -quick or -ci, both or
# nothing) by the options --test, --shared, --quick and --ci; any other calls the script's `usage`.
read_options() {
  # shellcheck disable=SC2034  # for the scripts
  test=no shared='' suffix=''
  local option quick=''
  for option in "$@"; do
    case "$option" in
      --test) test=yes ;;
      --shared) shared=-shared ;;
      --quick | --ci) quick="${option#-}" ;;
      *) usage ;;
    esac
  done
  suffix="$shared$quick"
}

# shellcheck disable=SC2034  # for the scripts
readonly quick_options=(-DENCORE_SIMD=widths -DENCORE_FEW_TILES=ON
                        "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG")

use_zig() {
  local target="$1" system="$2" bin="$PWD/$3/zig" version=0.17.1 zig tool name
  local headers="$PWD/build/cross/headers" more=""
  tools/python_env.sh ziglang==$version || exit $?
  zig=$(.deps/venv/bin/python -c 'import pathlib, ziglang
print(pathlib.Path(ziglang.__file__).with_name("zig"))')
  # With the features of all that is built, or zig would compile a C library for each set of them.
  [[ $target != wasm32 ]] ||
    target=wasm32-wasi more="-msimd128 -mexception-handling -fwasm-exceptions"
  [[ $system != Linux ]] || more=-fasynchronous-unwind-tables
  [[ -d .deps/highway-source ]] || { echo "left out: apt has no source of Highway here"; exit 3; }

  # -O1, which others replace, and -s, without which zig writes what debuggers read: for programs
  # that say nothing, as CMake's first ones, it would compile other libraries of C and C++. C++ has
  # tables of its stack, and so has C, or there would be two of musl.
  #
  # Names of source files in messages begin at the root of the tree, those that CMake makes at the
  # folder of the build, three below it, from where ccache has all of them and the headers below.
  local deps options
  deps="$(readlink -f .deps)"
  options="-target $target $more -O1 -s '-ffile-prefix-map=$PWD/='"
  options+=" '-ffile-prefix-map=$deps/=.deps/'"
  options+=" '-ffile-prefix-map=$PWD/$3/=' -ffile-prefix-map=../../../="
  options+=" -ffile-prefix-map=../headers/=build/cross/headers/"
  mkdir -p "$bin"
  for tool in "cc $options" "c++ $options" ar ranlib rc; do
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$bin/${tool%% *}"
  done
  # Programs link the C++ library that is built here.
  [[ $target != wasm32-* ]] ||
    sed -i '1a case " $* " in *" -c "*) ;; *) set -- -nostdlib++ "$@" ;; esac' "$bin/c++"
  chmod +x "$bin"/*

  # Headers of no system: those beside them are this one's C library.
  mkdir -p "$headers"
  for name in nlohmann CLI; do
    [[ -e "$headers/$name" ]] || cp -r "/usr/include/$name" "$headers"
  done

  # The programs above are new ones to ccache each time, and what they call is not, nor are its
  # options but for folders.
  options="${options//"$deps"/}"
  export CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK="string:zig $version ${options//"$PWD"/}"
  zig_options=(
    -DCMAKE_SYSTEM_NAME="$system" -DCMAKE_SYSTEM_PROCESSOR="${target%%-*}"
    -DCMAKE_C_COMPILER="$bin/cc" -DCMAKE_CXX_COMPILER="$bin/c++"
    -DCMAKE_AR="$bin/ar" -DCMAKE_RANLIB="$bin/ranlib" -DCMAKE_RC_COMPILER="$bin/rc"
    -DCMAKE_PROJECT_encore_INCLUDE="$PWD/tools/cmake/cross_headers.cmake"
    -DENCORE_CROSS_HEADERS="$headers"
    -DFETCHCONTENT_SOURCE_DIR_HWY="$PWD/.deps/highway-source" -DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON
    -DENCORE_OPENMP=OFF -DENCORE_BUILD_BENCHMARKS=OFF -DENCORE_BUILD_SERVER=OFF
    -DENCORE_BUILD_IMAGES=OFF)
  [[ $target != wasm32-* ]] ||
    zig_options+=(-DCMAKE_PROJECT_encore_INCLUDE="$PWD/tools/wasm/runtime.cmake"
                  -DENCORE_ZIG_LIBRARY="${zig%/*}/lib" -DENCORE_INSTALL=OFF)
}
