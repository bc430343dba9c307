#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes FOLDER/python, a CPython on musl to try wheels with, where no distribution has one:
#
#   tools/musl_python.sh PYTHON FOLDER      FOLDER/python --version|-|FILE|-m MODULE [ARGUMENT...]
#
# It is the program that PyPI's cx_Freeze has for frozen programs, with the library of PYTHON, which
# is of the same version, and the musl of Debian's trixie, as bookworm's is too old for it. It takes
# PYTHONPATH, and has neither zlib nor what needs that (ssl, numpy.random). Exit status 3: it cannot
# be had here, as the last line says.

set -euo pipefail
[[ $# -eq 2 ]] || { sed -n '6p' "${BASH_SOURCE[0]}" >&2; exit 2; }
python="$1"
mkdir -p "$2"
folder="$(cd "$2" && pwd)"
readonly python folder log="$folder/log"
[[ ! -e "$folder/complete" ]] || exit 0
absent() { echo "left out: a Python on musl: $* (see $log)"; exit 3; }

rm -rf "${folder:?}"/{wheel,apt,musl,tree,python}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
  --platform musllinux_1_2_x86_64 --python-version "$version" --dest "$folder/wheel" \
  cx_Freeze==8.0.0 >"$log" 2>&1 || absent "pip has no cx_Freeze for Python $version"
"$python" -m zipfile -e "$folder"/wheel/*.whl "$folder/wheel"

# The machine's own mirror, but of trixie.
mkdir -p "$folder/apt/lists/partial"
# shellcheck disable=SC2016  # for apt
mirror=$(apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)' 'Created-By: Packages' 2>>"$log" |
           sed -n 's/^Debian|//p' | grep -v security | head -n 1) || absent "apt has no mirror"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" \
  >"$folder/apt/sources.list"
apt=(apt-get -qq -o Dir::Etc::sourcelist="$folder/apt/sources.list"
     -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$folder/apt/lists"
     -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User="$(id -un)")
{ "${apt[@]}" update && (cd "$folder/apt" && "${apt[@]}" download musl); } >>"$log" 2>&1 ||
  absent "apt cannot download trixie's musl"
dpkg-deb -x "$folder"/apt/musl_*.deb "$folder/musl"

bases="$folder/wheel/cx_Freeze/bases"
mkdir "$folder/tree"
cp -r "$("$python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" "$folder/tree/lib"
rm -rf "$folder"/tree/lib/{site-packages,dist-packages,lib-dynload,test}
cp "$bases"/console-cpython-*-musl "$folder/tree/python"
chmod +x "$folder/tree/python"
cp "$bases"/lib/*.so* "$bases"/lib-dynload/*.so "$folder/tree/lib"
cat >"$folder/tree/lib/__startup__.py" <<'PY'
"""What the program runs: as the command python, but for most options."""
import os
import runpy
import sys


def init():
    sys.path[0:0] = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]


def run():
    del sys.argv[0]
    if sys.argv[0] == "--version":
        print("Python", sys.version.split()[0], "on musl")
    elif sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif sys.argv[0] == "-":
        exec(compile(sys.stdin.read(), "<stdin>", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
PY
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$folder"/musl/usr/lib/ld-musl-*.so.1 \
  "$folder/tree/python" >"$folder/python"
chmod +x "$folder/python"
[[ "$("$folder/python" - <<<'import sys; print("%d.%d" % sys.version_info[:2])' 2>>"$log")" == \
   "$version" ]] || absent "what was made does not run"
touch "$folder/complete"
