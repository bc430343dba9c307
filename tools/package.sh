#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a package of encore for a package manager, installs it where nothing else of encore is, runs
# a program that uses it, and removes it. Everything is below build/package. What is tried is the
# package: encore is compiled for few SIMD targets, which takes a third of the time.
#
#   tools/package.sh conan    Conan 2: packaging/conan
#
# Exit status 3: something cannot be had here, as the last line says.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly out="$PWD/build/package"
fail() { printf 'package: %s\n' "$*" >&2; exit 1; }
# Runs a command with its output in a log, whose end is shown if it fails.
logged() {
  local log="$out/$1.log"
  "${@:2}" >"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "failed: ${*:2} (all of it: $log)"; }
}

# shellcheck source=tools/use_ccache.sh
source tools/use_ccache.sh

# With Highway and nlohmann/json of this machine, as a registry of Conan's may be out of reach.
package_conan() {
  local conan="$out/conan-venv/bin/conan" count
  local variables='{"ENCORE_SIMD": "widths", "ENCORE_FEW_TILES": "ON"}'
  if [[ ! -x "$conan" ]]; then
    python3 -m venv "$out/conan-venv"
    "$out/conan-venv/bin/pip" install -q 'conan>=2.8,<3' ||
      { echo "left out: pip has no Conan here"; exit 3; }
  fi
  export CONAN_HOME="$out/conan" CMAKE_PREFIX_PATH="$PWD/.deps/highway"
  rm -rf "$CONAN_HOME"
  logged conan-profile "$conan" profile detect
  logged conan-create "$conan" create packaging/conan --no-remote -s compiler.cppstd=20 \
    -o 'encore/*:system_dependencies=True' \
    -c "tools.cmake.cmake_layout:test_folder=$out/conan-test" \
    -c "tools.cmake.cmaketoolchain:extra_variables=$variables"
  grep 'encore .* says: ' "$out/conan-create.log" ||
    fail "the test program said nothing (all of it: $out/conan-create.log)"
  logged conan-remove "$conan" remove --confirm 'encore/*'
  count=$("$conan" list 'encore/*' --format=json | grep -c '"encore/' || true)
  [[ $count -eq 0 ]] || fail "Conan still has $count packages of encore"
  echo "conan: a static package was made, used and removed"
}

case "${1:-}" in
  conan) mkdir -p "$out"; "package_$1" ;;
  *) sed -n '4,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
