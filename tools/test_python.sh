#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds pyencore's wheel, installs it into an environment of its own and runs python/tests there.
#
#   tools/test_python.sh [PYTEST_ARGUMENT ...]
#   PYTHON=python3.12 tools/test_python.sh
#
# The wheel is built in build/python-wheel, here with OpenMP as the other builds of the tree are, so
# that ccache has their objects. The environment is build/python-venv; sentence-transformers, the
# reference, is taken from .deps/venv (tools/python_env.sh peers) where that has the same version of
# Python. What is not there is left out, and the tests' header says so. Exit status: 0 passed; 3 the
# tools of the build cannot be had; else failed.

set -euo pipefail
[[ "${1:-}" != --help ]] || exec sed -n '4,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly venv=build/python-venv
readonly log=build/test_python.log
python="${PYTHON:-}"
if [[ -z "$python" ]]; then
  python=python3
  [[ -x .deps/venv/bin/python ]] && python="$(readlink -f .deps/venv/bin/python)"
fi

mkdir -p build
: >"$log"
absent() { printf 'test_python: left out: %s; see %s\n' "$*" "$log" >&2; exit 3; }
install() {
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-input "$@" >>"$log" 2>&1
}

if [[ ! -x "$venv/bin/pip" ]]; then
  rm -rf "$venv"
  "$python" -m venv "$venv" >>"$log" 2>&1 || absent "$python cannot make $venv (python3-venv)"
fi
tools=(scikit-build-core==1.1.2 nanobind==3.1.0 ninja numpy pytest pytest-xdist mypy tqdm ruff)
tools+=(pillow matplotlib scipy Jinja2 jsonschema)  # for pictures and pyencore.lab
# The stable ABI wants CMake 3.26. Else the system's, whose command lines are those in the cache.
"$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' && tools+=(cmake)
if [[ "$(cat "$venv/tools.txt" 2>/dev/null)" != "${tools[*]}" ]]; then
  install "${tools[@]}" || absent "pip cannot install ${tools[*]}"
  for package in huggingface_hub langchain-core llama-index-core haystack-ai 'ray[data]==2.60.0'; do
    install "$package" || printf 'test_python: without %s\n' "$package" >&2
  done
  echo "${tools[*]}" >"$venv/tools.txt"
fi

# After the environment's own packages, those of the reference.
site="$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
reference=".deps/venv/lib/$(basename "$(dirname "$site")")/site-packages"
if [[ -d "$reference/sentence_transformers" ]]; then
  readlink -f "$reference" >"$site/zz_reference.pth"
else
  printf 'test_python: without sentence-transformers (no %s)\n' "$reference" >&2
fi

# The compiler by the name that CMake has for it: Python's own settings would say another.
export CXX="${CXX:-c++}"
# shellcheck source=tools/use_ccache.sh
source tools/use_ccache.sh
export CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-$(nproc)}"
rm -rf build/python-wheels
"$venv/bin/pip" wheel . --no-deps --no-build-isolation --wheel-dir build/python-wheels \
  --config-settings build-dir=build/python-wheel \
  --config-settings cmake.define.ENCORE_OPENMP=ON \
  --config-settings cmake.define.ENCORE_WERROR="${ENCORE_WERROR:-OFF}" >>"$log" 2>&1 || {
  grep -n -m1 -A20 -E 'error:|FAILED|CMake Error' "$log" >&2 || tail -n 30 "$log" >&2
  echo "test_python: the wheel was not built; all of it is in $log" >&2
  exit 1
}
install --force-reinstall --no-deps build/python-wheels/pyencore-*.whl

"$venv/bin/ruff" check --quiet python examples
"$venv/bin/encore" --version
export ENCORE="${ENCORE:-$PWD/$venv/bin/encore}"  # what pyencore.lab runs
"$venv/bin/python" -m pytest -q -p no:cacheprovider -rs -n "${JOBS:-$(nproc)}" --dist loadfile \
  --no-loadscope-reorder python/tests "$@"
