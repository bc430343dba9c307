#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the encore command for another system or architecture with the Clang of PyPI's ziglang, and
# the musl and MinGW in it, as one file that needs nothing but its system:
#
#   tools/cross.sh x86_64-linux-musl            build/cross/x86_64-linux-musl/bin/encore
#   tools/cross.sh aarch64-linux-musl --test
#
# --test runs it, another architecture's in qemu and Windows' in wine. Vectors of 1,000 texts, in a
# folder whose name is not ASCII, have the bytes of build/release in every precision, and `encore
# verify` finds the published hashes. For Windows it also runs the tests with the label windows
# (tests/labels.cmake). Exit status 3: something cannot be had here, as the last line says.
# --quick compiles for few SIMD targets and optimises little, into build/cross/TARGET-quick.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Target, its system to CMake, what runs its programs, what `encore verify` checks of it.
readonly table="
x86_64-linux-musl   Linux    -             published
aarch64-linux-musl  Linux    qemu-aarch64  published
x86_64-windows-gnu  Windows  wine          published,bits
"

usage() {
  echo "usage: tools/cross.sh TARGET [--test] [--quick]; the targets:" >&2
  awk 'NF {print "  " $1}' <<<"$table" >&2
  exit 2
}

target="${1:-}" suffix='' test=no
read -r _ system runner parts < <(awk -v target="$target" '$1 == target' <<<"$table") || usage
for option in "${@:2}"; do
  case "$option" in
    --test) test=yes ;;
    --quick) suffix=-quick ;;
    *) usage ;;
  esac
done
readonly arch="${target%%-*}" folder="build/cross/$target$suffix"

if [[ $test == yes && $runner != - ]]; then
  command -v "$runner" >/dev/null || { echo "left out: there is no $runner here"; exit 3; }
fi

readonly zig_version=0.17.1
tools/python_env.sh ziglang==$zig_version
zig=$(.deps/venv/bin/python -c 'import pathlib, ziglang
print(pathlib.Path(ziglang.__file__).with_name("zig"))')
[[ -d .deps/highway-source ]] || { echo "cross.sh: apt has no source of Highway here"; exit 3; }

# CMake wants each tool as one program.
readonly bin="$PWD/$folder/zig"
mkdir -p "$bin"
for tool in "cc -target $target" "c++ -target $target" ar ranlib rc; do
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$bin/${tool%% *}"
done
chmod +x "$bin"/*

# Headers of no system: those beside them are this one's C library.
readonly headers="$PWD/build/cross/headers"
mkdir -p "$headers"
for name in nlohmann CLI; do
  [[ -e "$headers/$name" ]] || cp -r "/usr/include/$name" "$headers"
done

options=(-DENCORE_BUILD_TESTS=OFF) targets=(--target encore_tool)
if [[ $runner == wine && $test == yes && -e /usr/src/googletest/CMakeLists.txt ]]; then
  options=(-DENCORE_BUILD_TESTS=ON -DENCORE_TESTS=windows -DCMAKE_CROSSCOMPILING_EMULATOR=wine
           -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON
           -DFETCHCONTENT_SOURCE_DIR_GTEST=/usr/src/googletest)
  targets+=(--target encore_tests)
fi
options+=(-DCMAKE_EXE_LINKER_FLAGS=-s)
if [[ -n "$suffix" ]]; then
  options+=(-DENCORE_SIMD=widths -DENCORE_FEW_TILES=ON "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG")
fi

# The programs above are new ones to ccache each time, and what they call is not.
export CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK="string:zig $zig_version $target"
tools/build.sh "$folder" -DCMAKE_SYSTEM_NAME="$system" -DCMAKE_SYSTEM_PROCESSOR="$arch" \
  -DCMAKE_C_COMPILER="$bin/cc" -DCMAKE_CXX_COMPILER="$bin/c++" \
  -DCMAKE_AR="$bin/ar" -DCMAKE_RANLIB="$bin/ranlib" -DCMAKE_RC_COMPILER="$bin/rc" \
  -DCMAKE_PROJECT_encore_INCLUDE="$PWD/tools/cmake/cross_headers.cmake" \
  -DENCORE_CROSS_HEADERS="$headers" \
  -DFETCHCONTENT_SOURCE_DIR_HWY="$PWD/.deps/highway-source" -DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON \
  -DENCORE_OPENMP=OFF -DENCORE_BUILD_BENCHMARKS=OFF -DENCORE_BUILD_SERVER=OFF \
  -DENCORE_BUILD_IMAGES=OFF "${options[@]}" "${targets[@]}"
encore="$folder/bin/encore"
[[ $system != Windows ]] || encore+=.exe
readonly encore
ls -l "$encore"
[[ $test == yes ]] || exit 0

program=("$encore")
case "$runner" in
  wine)
    export WINEPREFIX="$PWD/build/cross/wine" WINEDEBUG=-all
    program=(wine "$encore") ;;
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
[[ -x build/release/bin/encore ]] || tools/build.sh build/release --target encore_tool

# embed PRECISION OUTPUT PROGRAM...: the texts' vectors.
embed() {
  "${@:3}" embed --model "$work/base" --input "$work/texts 日本.txt" --threads 2 \
    --precision "$1" --output "$work/$2" >/dev/null
}
for precision in f32 bf16 int8 int4; do
  embed $precision "$precision.npy" build/release/bin/encore
  embed $precision other.npy "${program[@]}"
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
  wine) tools/ctest.sh "$folder" ;;
esac
