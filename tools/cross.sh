#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the encore command as one file that any Linux of its architecture runs, with the Clang and
# the musl of PyPI's ziglang, into build/cross/TARGET/bin:
#
#   tools/cross.sh x86_64-linux-musl
#   tools/cross.sh aarch64-linux-musl --test
#
# --test runs it, another architecture's in qemu: vectors of 1,000 texts have the bytes of
# build/release in every precision, and `encore verify` finds the published hashes. Exit status 3:
# something cannot be had here, as the last line says.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly usage="usage: tools/cross.sh TARGET [--test]"
readonly target="${1:?$usage}"
[[ $# -eq 1 || ($# -eq 2 && "$2" == --test) ]] || { echo "$usage" >&2; exit 2; }
[[ "$target" =~ ^(x86_64|aarch64)-linux-musl$ ]] ||
  { echo "cross.sh: found '$target', wanted x86_64-linux-musl or aarch64-linux-musl" >&2; exit 2; }
readonly arch="${target%%-*}" folder="build/cross/$target"

tools/python_env.sh ziglang==0.17.1
zig=$(.deps/venv/bin/python -c 'import pathlib, ziglang
print(pathlib.Path(ziglang.__file__).with_name("zig"))')
[[ -d .deps/highway-source ]] || { echo "cross.sh: apt has no source of Highway here"; exit 3; }

# CMake wants each tool as one program.
readonly bin="$PWD/$folder/zig"
mkdir -p "$bin"
for tool in "cc -target $target" "c++ -target $target" ar ranlib; do
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$bin/${tool%% *}"
done
chmod +x "$bin"/*

# Headers of no system: those beside them are this one's C library.
readonly headers="$PWD/build/cross/headers"
mkdir -p "$headers"
for name in nlohmann CLI; do
  [[ -e "$headers/$name" ]] || cp -r "/usr/include/$name" "$headers"
done

tools/build.sh "$folder" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$arch" \
  -DCMAKE_C_COMPILER="$bin/cc" -DCMAKE_CXX_COMPILER="$bin/c++" \
  -DCMAKE_AR="$bin/ar" -DCMAKE_RANLIB="$bin/ranlib" \
  -DCMAKE_PROJECT_encore_INCLUDE="$PWD/tools/cmake/cross_headers.cmake" \
  -DENCORE_CROSS_HEADERS="$headers" \
  -DFETCHCONTENT_SOURCE_DIR_HWY="$PWD/.deps/highway-source" -DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON \
  -DCMAKE_EXE_LINKER_FLAGS=-s -DENCORE_OPENMP=OFF -DENCORE_BUILD_TESTS=OFF \
  -DENCORE_BUILD_BENCHMARKS=OFF -DENCORE_BUILD_SERVER=OFF -DENCORE_BUILD_IMAGES=OFF \
  --target encore_tool
readonly encore="$folder/bin/encore"
ls -l "$encore"
[[ "${2:-}" == --test ]] || exit 0

program=("$encore")
if [[ "$arch" != "$(uname -m)" ]]; then
  command -v "qemu-$arch" >/dev/null || { echo "left out: there is no qemu-$arch here"; exit 3; }
  program=("qemu-$arch" "$encore")
fi

# In folders whose names are not ASCII, with texts that are not either.
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
for precision in f32 bf16 int8 int4; do
  for one in own other; do
    command=(build/release/bin/encore)
    [[ $one == own ]] || command=("${program[@]}")
    "${command[@]}" embed --model "$work/base" --input "$work/texts 日本.txt" --threads 2 \
      --precision "$precision" --output "$work/$one.npy" >/dev/null
  done
  cmp "$work/own.npy" "$work/other.npy"
done
echo "1,000 texts have the bytes of build/release in f32, bf16, int8 and int4"
"${program[@]}" verify --only published

if [[ "$arch" == "$(uname -m)" && $EUID -eq 0 ]]; then
  cp "$encore" "$work/encore"
  chroot "$work" /encore embed --model /base --input "/texts 日本.txt" --output /alone.npy >/dev/null
  "$work/encore" embed --model "$work/base" --input "$work/texts 日本.txt" \
    --output "$work/own.npy" >/dev/null
  cmp "$work/own.npy" "$work/alone.npy"
  echo "and so they have in a folder that holds nothing but the program, the model and the texts"
fi
