#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes .deps/venv, the Python environment of the scripts that compare encore with others, from
# wheels of pinned versions. pip fetches them from the index it is configured for. Says nothing when
# everything is there already. Neither the build nor the library needs any of it (tools/setup.sh).
#
#   tools/python_env.sh                 tokenizers, the reference for token ids, and numpy
#   tools/python_env.sh peers           also what bench/peers/requirements.txt lists (6 GB)
#   tools/python_env.sh NAME==VERSION   also this package
#   PYTHON=python3.11 tools/python_env.sh
#
# Then run a script with .deps/venv/bin/python. Exit status: 0 all is there; 3 it could not be had,
# with one sentence on stderr, so that callers leave out what needs it and say so; 2 bad usage.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly venv=.deps/venv
readonly log=.deps/python_env.log
readonly installed="$venv/installed.txt"  # one line for each package that was asked for
readonly python="${PYTHON:-python3}"

absent() { printf 'python_env: not everything is here: %s\n' "$*" >&2; exit 3; }

wanted=(numpy==2.4.6 tokenizers==0.23.3)
for argument in "$@"; do
  case "$argument" in
    peers) mapfile -t -O "${#wanted[@]}" wanted < <(grep -v '^#' bench/peers/requirements.txt) ;;
    *==*) wanted+=("$argument") ;;
    *) echo "python_env: found '$argument', wanted peers or NAME==VERSION" >&2; exit 2 ;;
  esac
done

# One at a time: steps that run at once may want packages.
mkdir -p .deps
exec {lock}>.deps/python_env.lock
flock "$lock"

missing=()
for package in "${wanted[@]}"; do
  grep -qxF "$package" "$installed" 2>/dev/null || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

: >"$log"
printf 'python_env: installing %s into %s\n' "${missing[*]}" "$venv"
if [[ ! -x "$venv/bin/pip" ]]; then
  rm -rf "$venv"
  "$python" -m venv "$venv" >>"$log" 2>&1 ||
    absent "$python cannot make $venv (Debian's package is python3-venv); see $log"
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-input --only-binary :all: \
  "${missing[@]}" >>"$log" 2>&1 ||
  absent "pip cannot install ${missing[*]} ($(grep -v '^ *$' "$log" | tail -n 1)); see $log"
# Last, so that a run that is cut short starts again.
printf '%s\n' "${missing[@]}" >>"$installed"
