#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a package of encore, installs it where nothing else of encore is, runs programs that use it,
# and removes it. Everything is below build/package.
#
#   tools/package.sh debian [--quick]  Debian: packaging/debian, from the last commit
#   tools/package.sh archive TARGET [--shared] [--quick] [--again]
#                                      headers, libraries and command for a target of cross.sh;
#                                      --shared: DLLs, without the command; --again compares a
#                                      second build, elsewhere
#   tools/package.sh conan             Conan 2: packaging/conan, static and shared
#   tools/package.sh vcpkg             vcpkg: packaging/vcpkg, its steps run without vcpkg
#   tools/package.sh abi [--store]     whether the C interface is that of packaging/abi, or more
#
# --quick compiles for few SIMD targets, which takes a third of the time or less. Conan's and
# vcpkg's, and so Debian's with --quick, are compiled for one, hardly optimised, since what is tried
# is the package. Exit status 3: something cannot be had here, as the last line says.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly out="$PWD/build/package"
usage() { sed -n '/^#   tools/,/^#$/s/^# \{0,3\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
fail() { printf 'package: %s\n' "$*" >&2; exit 1; }
left_out() { printf 'left out: %s\n' "$*"; exit 3; }
# Runs a command with its output in a log, whose end is shown if it fails.
logged() {
  local log="$out/$1.log"
  "${@:2}" >"$log" 2>&1 || { tail -n 30 "$log" >&2; fail "failed: ${*:2} (all of it: $log)"; }
}

# Installs with apt what of these packages is missing.
need_packages() {
  local package wanted=()
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' ||
      wanted+=("$package")
  done
  [[ ${#wanted[@]} -gt 0 ]] || return 0
  [[ $EUID -eq 0 ]] || left_out "only root can install ${wanted[*]}"
  echo "package: installing ${wanted[*]}"
  { apt-get update && DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "${wanted[@]}"; } >"$out/apt.log" 2>&1 ||
    left_out "apt cannot install ${wanted[*]} here; see $out/apt.log"
}

# shellcheck disable=SC2034,SC2155  # for the parts
readonly few_targets=(-DENCORE_SIMD=widths -DENCORE_FEW_TILES=ON)
export CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-$(nproc)}"

# A header's version by its macros' prefix: 1.2.0.
version_of() {
  sed -nE "s/^#define $1(MAJOR|MINOR|PATCH) +([0-9]+)( .*)?$/\2/p" "$2" | paste -sd.
}
# shellcheck disable=SC2034,SC2155  # for the parts
readonly version="$(version_of ENCORE_VERSION_ include/encore/version.h)"

kind="${1:-}"
[[ "$kind" =~ ^[a-z]+$ && -e "tools/package/$kind.sh" ]] || usage
mkdir -p "$out"
# shellcheck source=tools/use_ccache.sh
source tools/use_ccache.sh
# shellcheck source=/dev/null
source "tools/package/$kind.sh"
"package_$kind" "${@:2}"
