#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes .deps/venv, the Python environment of the scripts that compare encore with others, from
# wheels of pinned versions. pip fetches them from the index it is configured for. Says nothing when
# everything is there already. Neither the build nor the library needs any of it (tools/setup.sh).
#
#   tools/python_env.sh                 tokenizers, the reference for token ids, and numpy
#   tools/python_env.sh peers           also what bench/peers/requirements.txt lists (6 GB)
#   tools/python_env.sh peers backends  also what bench/peers/backends.txt lists (0.8 GB), each
#                                       backend's in an environment on top, .deps/venv-NAME
#   tools/python_env.sh NAME==VERSION   also this package
#   PYTHON=python3.11 tools/python_env.sh
#
# Then run a script with .deps/venv/bin/python. Exit status: 0 all is there; 3 it could not be had,
# with one sentence on stderr, so that callers leave out what needs it and say so; 2 bad usage.

set -euo pipefail
[[ "${1:-}" != --help ]] || exec sed -n '4,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly base=.deps/venv
readonly log=.deps/python_env.log
readonly python="${PYTHON:-python3}"

absent() { printf 'python_env: not everything is here: %s\n' "$*" >&2; exit 3; }

wanted=(numpy==2.4.6 tokenizers==0.23.3)
declare -A backends=()  # packages by name
for argument in "$@"; do
  case "$argument" in
    peers) mapfile -t -O "${#wanted[@]}" wanted < <(grep -v '^#' bench/peers/requirements.txt) ;;
    backends)
      while read -r name package; do
        backends[$name]+=" $package"
      done < <(grep -v '^#' bench/peers/backends.txt) ;;
    *==*) wanted+=("$argument") ;;
    *) echo "python_env: found '$argument', wanted peers, backends or NAME==VERSION" >&2; exit 2 ;;
  esac
done

# The environment $1, made by the interpreter $2 if it is not there, gets the packages that follow.
# Its installed.txt has a line for each package that was asked for.
install() {
  local venv="$1" made_by="$2" package
  local -a missing=()
  for package in "${@:3}"; do
    [[ " ${missing[*]} " == *" $package "* ]] ||
      grep -qxF "$package" "$venv/installed.txt" 2>/dev/null || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  printf 'python_env: installing %s into %s\n' "${missing[*]}" "$venv"
  if [[ ! -x "$venv/bin/pip" ]]; then
    rm -rf "$venv"
    "$made_by" -m venv "$venv" >>"$log" 2>&1 ||
      absent "$made_by cannot make $venv (Debian's package is python3-venv); see $log"
    # After its own packages, those of .deps/venv.
    [[ "$venv" == "$base" ]] || "$venv/bin/python" -c '
import pathlib, sysconfig
own = pathlib.Path(sysconfig.get_path("purelib"))
base = pathlib.Path(".deps/venv").resolve()
(own / "zz_base.pth").write_text(f"{base / own.relative_to(own.parents[2])}\n")'
  fi
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-input --only-binary :all: \
    "${missing[@]}" >>"$log" 2>&1 ||
    absent "pip cannot install ${missing[*]} ($(grep -v '^ *$' "$log" | tail -n 1)); see $log"
  # Last, so that a run that is cut short starts again.
  printf '%s\n' "${missing[@]}" >>"$venv/installed.txt"
}

# One at a time: steps that run at once may want packages.
mkdir -p .deps
exec {lock}>.deps/python_env.lock
flock "$lock"

: >"$log"
install "$base" "$python" "${wanted[@]}"
for name in "${!backends[@]}"; do
  read -ra packages <<<"${backends[$name]}"
  install "$base-$name" "$base/bin/python" "${packages[@]}"
done
