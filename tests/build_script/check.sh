#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/build.sh with ccache on PATH and without, on a project of one file. The ccache here is a
# script that says how it was called and runs the compiler.
#
#   check.sh ROOT

set -euo pipefail

root="$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
fail() { printf 'build_script: %s\n' "$*" >&2; exit 1; }

# A tree with build.sh in its place.
mkdir -p "$work/tree/tools" "$work/bin" "$work/with"
cp "$root"/tools/{build,use_ccache}.sh "$work/tree/tools/"
printf '%s\n' 'cmake_minimum_required(VERSION 3.20)' 'project(one LANGUAGES CXX)' \
  'add_executable(one one.cc)' >"$work/tree/CMakeLists.txt"
echo 'int main() {}' >"$work/tree/one.cc"

# Everything that a build needs, but ccache.
for tool in bash cat cmake c++ cc as ld ar ranlib nm make ninja mkdir nproc dirname grep tail \
            uname; do
  path="$(command -v "$tool")" || continue
  ln -s "$(realpath "$path")" "$work/bin/$tool"
done
cat >"$work/with/ccache" <<SCRIPT
#!/usr/bin/env bash
[[ \$* != "--get-config cache_dir" ]] || { echo "\${CACHE:-$work/cache}"; exit; }
echo "\$CCACHE_BASEDIR \$CCACHE_NOHASHDIR \$CCACHE_SLOPPINESS \$*" >>"$work/calls"
exec "\$@"
SCRIPT
chmod +x "$work/with/ccache"

build() { env -u CMAKE_CXX_COMPILER_LAUNCHER -u CXX PATH="$1" "$work/tree/tools/build.sh" "$2"; }

build "$work/bin" build/without >"$work/out" || fail "it fails without ccache: $(cat "$work/out")"
grep -q 'CMAKE_CXX_COMPILER_LAUNCHER.*ccache' "$work/tree/build/without/CMakeCache.txt" &&
  fail "found ccache where there is none"
[[ ! -e "$work/calls" ]] || fail "ccache was called: $(cat "$work/calls")"

build "$work/with:$work/bin" build/with >"$work/out" || fail "it fails: $(cat "$work/out")"
grep -q "^$work/tree 1 pch_defines,time_macros,locale .*-c .*one.cc" "$work/calls" ||
  fail "ccache was called so: $(cat "$work/calls" 2>/dev/null || echo never)"

# Not where it can write nothing: below a file no folder is made.
rm "$work/calls"
CACHE="$work/with/ccache/cache" build "$work/with:$work/bin" build/read_only >"$work/out" ||
  fail "it fails without a cache's folder: $(cat "$work/out")"
[[ ! -e "$work/calls" ]] || fail "ccache was called without a folder: $(cat "$work/calls")"

# A launcher of the user's own stays.
cp "$work/with/ccache" "$work/with/own"
PATH="$work/with:$work/bin" CMAKE_CXX_COMPILER_LAUNCHER="$work/with/own" \
  "$work/tree/tools/build.sh" build/own >"$work/out" || fail "it fails: $(cat "$work/out")"
grep -q "CMAKE_CXX_COMPILER_LAUNCHER:[A-Z]*=$work/with/own" "$work/tree/build/own/CMakeCache.txt" ||
  fail "another launcher than the user's own"
