#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Configures and builds one build folder, quietly: the compiler's output is shown when it fails.
# Sets nothing up (setup.sh does).
#
#   tools/build.sh FOLDER [-DNAME=VALUE ...] [--target TARGET ...]
#
# FOLDER is below the root of the tree. CXX is the compiler, as CMake has it; JOBS the number of
# compilers at once (default: the cores that this process may use). ENCORE_WERROR=ON in the
# environment turns warnings into errors, as .ci/run does; elsewhere a compiler that is newer than
# this code must not stop the build. Where ccache is installed it is used, so that another clone on
# the same machine is built fast; CMAKE_CXX_COMPILER_LAUNCHER names another launcher.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder="${1:-}"
if [[ -z "$folder" || "$folder" == -* ]]; then
  sed -n '4,14s/^# \{0,1\}//p' tools/build.sh >&2
  exit 2
fi
shift
options=()
targets=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    -D*) options+=("$1") ;;
    --target) targets+=(--target "$2"); shift ;;
    *) echo "build.sh: unknown argument '$1'" >&2; exit 2 ;;
  esac
  shift
done

mkdir -p "$folder"
log="$folder/build.log"
generator=()
[[ ! -e "$folder/CMakeCache.txt" ]] && command -v ninja >/dev/null && generator=(-G Ninja)

# shellcheck source=tools/use_ccache.sh
source tools/use_ccache.sh

started=$SECONDS
echo "build: $folder ${options[*]} (the log is $log)"
if ! {
  cmake -S . -B "$folder" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
    -DENCORE_WERROR="${ENCORE_WERROR:-OFF}" "${options[@]}" &&
    cmake --build "$folder" --parallel "${JOBS:-$(nproc)}" "${targets[@]}"
} >"$log" 2>&1; then
  # The first error is what matters; with several compilers at once it is not at the end.
  grep -n -m1 -A30 -E 'error|FAILED|CMake Error' "$log" >&2 || tail -n 40 "$log" >&2
  echo "build: failed; all of it is in $log" >&2
  exit 1
fi
echo "build: done in $((SECONDS - started)) s"
