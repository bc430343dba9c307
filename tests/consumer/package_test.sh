#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs encore from a build folder into a folder of its own and builds and runs the programs of
# README.md and docs/engine.md and one in C against it, through find_package and through pkg-config.
# With --subdirectory it does so with the source tree inside the user's project instead, whose
# compiler options are not encore's (which compiles encore again, for every target and at -O1: it is
# not about speed), compares the published bits, and loads two libraries with an encore in each. Of
# shared libraries it checks what they export, and calls them from Python, where that is installed.
#
#   package_test.sh BUILD_DIR [--subdirectory]      (which takes nothing from BUILD_DIR)
#
# CXX and CC are the compilers.

set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
[[ "${2:-}" == --subdirectory ]] || build="$(cd "$1" && pwd)"
export CXX="${CXX:-c++}" CC="${CC:-cc}"
export CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-2}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

step() { printf '%s\n' "$*"; }
fail() { printf 'package_test: %s\n' "$*" >&2; exit 1; }

# Runs the programs that were built into a folder.
run_programs() {
  local program
  for program in engine_page text; do
    "$1/$program" >"$work/$program.out" || fail "$program failed"
  done
  # The README's programs with texts, where their model is.
  [[ -x "$1/readme_text" && -d "$root/.deps/models/all-MiniLM-L6-v2" ]] || return 0
  for program in readme_text readme_text_c; do
    (cd "$root" && "$1/$program") >"$work/$program.out" || fail "$program failed"
    grep -q '^0\.6030' "$work/$program.out" ||
      fail "$program printed $(cat "$work/$program.out"), not the 0.6030 of the README"
  done
}

# encore as an installed package.
test_installed() {
  step "install"
  # DESTDIR stays out of it: the package must work from wherever --prefix says.
  env -u DESTDIR cmake --install "$build" --prefix "$work/installed" >/dev/null
  # Moved after installing, because a package may be unpacked anywhere.
  mkdir "$work/elsewhere"
  mv "$work/installed" "$work/elsewhere/prefix"
  prefix="$work/elsewhere/prefix"
  pc="$(dirname "$(find "$prefix" -name encore.pc)")"
  libdir="$(dirname "$pc")"
  export LD_LIBRARY_PATH="$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

  grep -r "$root" "$prefix" --include='*.h' --include='*.cmake' --include='*.pc' &&
    fail "the installed files name the source tree"
  [[ -e "$prefix/include/encore/encore.h" ]] || fail "no include/encore/encore.h was installed"

  step "find_package"
  cmake -S "$here" -B "$work/find_package" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_BUILD_TYPE=Release >"$work/log" || { cat "$work/log"; fail "configuring failed"; }
  cmake --build "$work/find_package" >"$work/log" || { cat "$work/log"; fail "building failed"; }
  run_programs "$work/find_package"

  step "examples"
  cmake -S "$root/examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_BUILD_TYPE=Release >"$work/log" || { cat "$work/log"; fail "configuring failed"; }
  cmake --build "$work/examples" >"$work/log" || { cat "$work/log"; fail "building failed"; }

  # Make wants paths without blanks.
  ln -s "$root" "$work/tree"
  for flags in "" --static; do
    step "pkg-config $flags"
    out="pkg-config$flags"
    mkdir "$work/$out"
    PKG_CONFIG_PATH="$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}" \
      make -s -j "$CMAKE_BUILD_PARALLEL_LEVEL" -C "$work" -f tree/tests/consumer/Makefile \
      TREE=tree OUT="$out" PKG_CONFIG_FLAGS="$flags" CXXFLAGS=-O2 ||
      fail "building with pkg-config $flags failed"
    run_programs "$work/$out"
  done

  # A program in libstdc++'s debug mode, whose containers have another layout, must not link.
  if $CXX -x c++ -E -dM -include string /dev/null 2>/dev/null | grep -q __GLIBCXX__; then
    step "_GLIBCXX_DEBUG"
    printf '#include "encore/executor.h"\nint main() { return encore::Executor().threads(); }\n' \
      >"$work/debug.cc"
    $CXX -std=c++20 -I"$prefix/include" "$work/debug.cc" -o "$work/debug" ||
      fail "a program with executor.h does not link"
    $CXX -std=c++20 -D_GLIBCXX_DEBUG -I"$prefix/include" "$work/debug.cc" -o "$work/debug" \
      2>"$work/log" && fail "a program with -D_GLIBCXX_DEBUG links"
    grep -q kCompiledWithGlibcxxDebug "$work/log" || { cat "$work/log"; fail "another error"; }
  fi

  # The names of all symbols carry the version, so that another one in the same program is another
  # namespace.
  local namespace
  namespace="encore::v$(sed -nE 's/^#define ENCORE_VERSION_(MAJOR|MINOR) ([0-9]+)$/\2/p' \
    "$prefix/include/encore/version.h" | paste -sd _)"
  step "symbols of $namespace"
  nm --extern-only --defined-only --demangle "$libdir"/libencore*.{a,so} 2>/dev/null |
    grep 'encore::' >"$work/symbols" || true
  grep -q "$namespace::Encoder::Create" "$work/symbols" || [[ ! -e "$libdir/libencore.a" ]] ||
    fail "no $namespace::Encoder::Create in libencore.a"
  # What is called encore:: elsewhere than at the beginning of the namespace.
  sed "s/$namespace:://g" "$work/symbols" | grep 'encore::' | head -n 5 | grep . &&
    fail "symbols without the version in their names"

  # What the libraries keep from call to call has no destructor, which would run at exit() under
  # threads that are in a call (or keep a shared library loaded), and no guard, for which a forked
  # child may wait forever: it is constant, atomic, or a Once (engine/platform/once.h).
  step "statics"
  for library in "$libdir"/libencore*.{a,so}; do
    # Highway's own timer and benchmark, which no object of encore takes along.
    [[ -e "$library" && "$library" != *_highway.a ]] || continue
    nm --undefined-only "$library" >"$work/undefined" 2>/dev/null
    nm --dynamic --undefined-only "$library" >>"$work/undefined" 2>/dev/null || true
    grep -q '_Znwm' "$work/undefined" || fail "nm says nothing of ${library##*/}"
    nm --print-file-name --undefined-only --demangle "$library" 2>/dev/null |
      grep -E '__cxa_(thread_)?atexit|__cxa_guard_acquire' &&
      fail "${library##*/} has statics with destructors or guards"
    # Such a symbol is one for the whole process, and keeps its library loaded.
    nm --dynamic --defined-only "$library" 2>/dev/null | grep ' u ' &&
      fail "${library##*/} has symbols that keep it from being unloaded"
  done

  # All that a shared library exports is public and encore's. (Of templates of the standard library
  # there are weak symbols.)
  for library in "$libdir"/libencore*.so; do
    [[ -e "$library" ]] || continue
    step "exports of ${library##*/}"
    nm --dynamic --defined-only --demangle "$library" >"$work/exports"
    grep -vE " [uVvWw] | encore_[a-z0-9_]+$| ((typeinfo|typeinfo name|vtable) for )?$namespace::" \
      "$work/exports" && fail "${library##*/} exports more than encore's symbols"
    # encore::text shares its calls with encore's threads.
    grep -E "$namespace::internal::|hwy::|nlohmann::" "$work/exports" |
      grep -vE "$namespace::internal::(CallGate::|CallMeter::Exchange|RunTeamErased|Team::For)" &&
      fail "${library##*/} exports what is internal"
  done
  if [[ -e "$libdir/libencore_text.so" ]] && command -v python3 >/dev/null; then
    step "Python's ctypes"
    python3 "$here/c_api_ctypes.py" "$libdir/libencore_text.so" || fail "c_api_ctypes.py failed"
  fi
  if [[ -e "$libdir/libencore_text.so" && "$(uname)" == Linux ]]; then
    step "loaded and unloaded 1000 times"
    "$CC" -std=c99 -Wall -Wextra -Werror -I"$prefix/include" "$here/load_unload.c" \
      -o "$work/load_unload" -ldl
    "$work/load_unload" "$libdir/libencore_text.so" "$root/tests/data/text/base" 1000 ||
      fail "a shared encore cannot be unloaded"
  fi
}

if [[ "${2:-}" == --subdirectory ]]; then
  step "add_subdirectory"
  deps="$root/.deps/highway"
  # A project with options of its own: none may change a bit, or stop at what is encore's. The last
  # -O is the one that counts, and without it -Ofast says nothing of arithmetic.
  options="-Ofast -ffast-math -flto=auto -Wall -Wextra -Wconversion -Wshadow -Wold-style-cast"
  options+=" -Werror"
  cmake -S "$here" -B "$work/subdirectory" -DENCORE_SOURCE_DIR="$root" \
    -DCMAKE_PREFIX_PATH="$deps" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
    -DENCORE_SIMD=every -DENCORE_FEW_TILES=ON -DCMAKE_UNITY_BUILD=ON \
    "-DCMAKE_CXX_FLAGS=$options -fno-exceptions" \
    >"$work/log" || { cat "$work/log"; fail "configuring failed"; }
  cmake --build "$work/subdirectory" >"$work/log" ||
    { cat "$work/log"; fail "building failed"; }
  # Neither in the compiler's commands nor in what they made.
  readelf --sections --wide "$work"/subdirectory/encore/engine/libencore*.a >"$work/sections"
  grep -q '\.text' "$work/sections" || fail "readelf says nothing of encore's libraries"
  grep '\.gnu\.lto_' "$work/sections" | head -n 3 | grep . &&
    fail "encore's libraries are a part of the host's link-time optimisation"
  run_programs "$work/subdirectory"
  step "the published bits under $options"
  "$work/subdirectory/golden_bits" || fail "the host's options changed bits"
  step "two copies in one program"
  "$work/subdirectory/two_copies" || fail "two copies of encore are not independent"
else
  test_installed
fi
step "all of them build and run"
