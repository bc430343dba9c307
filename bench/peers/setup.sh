#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the Python environment of the peers in .deps/peers from requirements.txt, with the package
# index that pip is configured for. Says nothing when it is there already. Not here: what encore
# needs (tools/setup.sh).
#
#   bench/peers/setup.sh             with python3
#   PYTHON=python3.11 bench/peers/setup.sh

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly wanted=bench/peers/requirements.txt
readonly venv=.deps/peers
readonly log=.deps/peers-setup.log

fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

cmp -s "$wanted" "$venv/installed.txt" && exit 0

mkdir -p .deps
rm -rf "$venv"
printf 'setup: installing %s into %s\n' "$(grep -v '^#' "$wanted" | xargs)" "$venv"
{
  "${PYTHON:-python3}" -m venv "$venv" &&
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
} >"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  fail "failed (all of it is in $log); Debian needs python3-venv for this"
}
# Last, so that a run that is cut short starts again.
cp "$wanted" "$venv/installed.txt"
