#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How long a newcomer waits: wall and CPU seconds of setup, run, test, pip and ci, each in a fresh
# clone on a bare Debian 12, or on the release that SUITE names. Makes the Debian with debootstrap,
# with this machine's own sources of packages; run it as root, on a machine that does nothing else.
# FOLDER must not exist, and stays.
#
#   tools/time_fresh.sh FOLDER                       setup.sh, run.sh, test.sh
#   tools/time_fresh.sh FOLDER setup run test pip ci those
#   SUITE=trixie tools/time_fresh.sh FOLDER setup pip
#
# setup is timed apart: its time is that of the network. pip is `pip install .` in a new virtual
# environment, then README.md's Python block and python/tests there, untimed.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[[ $# -gt 0 ]] || { sed -n '4,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
folder="$1"
shift
[[ $# -gt 0 ]] || set -- setup run test
[[ ! -e "$folder" ]] || { echo "time_fresh: $folder is there already" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "time_fresh: install debootstrap" >&2; exit 2; }

suite="${SUITE:-bookworm}"
mkdir -p "$folder"
folder="$(realpath "$folder")"
mirror=$(apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)' 'Created-By: Packages' |
           sed -n 's/^Debian|//p' | grep -v security | head -n 1)
debootstrap --variant=minbase --include=ca-certificates,git "$suite" "$folder" "$mirror" \
  >"$folder.log" 2>&1
rm -f "$folder/etc/apt/sources.list"
cp -a /etc/apt/. "$folder/etc/apt/"
here=$(. /etc/os-release && echo "$VERSION_CODENAME")
find "$folder/etc/apt" -type f \( -name '*.list' -o -name '*.sources' \) \
  -exec sed -i "s/\b$here\b/$suite/g" {} +
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  [[ ! -e $file ]] || cp -L "$file" "$folder$file"
done
mount -t proc proc "$folder/proc"
mount --bind /dev "$folder/dev"
mount --bind /sys "$folder/sys"
trap 'umount "$folder/proc" "$folder/dev" "$folder/sys"' EXIT

in_debian() { chroot "$folder" env -u CMAKE_CXX_COMPILER_LAUNCHER -u JOBS bash -c "$1"; }

# timed NAME COMMAND: in the clone.
timed() {
  local seconds
  seconds=$({ time -p in_debian "cd /clone && $2" >"$folder.$1.log" 2>&1; } 2>&1) ||
    { tail -n 30 "$folder.$1.log" >&2; echo "time_fresh: $1 failed" >&2; exit 1; }
  awk -v name="$1" '{ t[$1] = $2 } END {
    printf "%-6s %7.1f s, of the processors %7.1f s\n", name, t["real"], t["user"] + t["sys"] }' \
    <<<"$seconds"
}

# What README.md says of Python, and the tests of the package, in an environment of its own.
use_package() {
  in_debian 'cd /clone && tools/fetch_model.sh && . /venv/bin/activate &&
    sed -n "/^\`\`\`python$/,/^\`\`\`$/{/^\`\`\`/d;p}" README.md >readme.py && python readme.py &&
    pip install -q pytest tqdm && python -m pytest -q python/tests' >"$folder.use.log" 2>&1 ||
    { tail -n 30 "$folder.use.log" >&2; echo "time_fresh: the package failed" >&2; exit 1; }
  grep -E '^\[*0\.|passed' "$folder.use.log"
}

fresh_clone() {
  local deps=
  if [[ -d "$folder/clone/.deps" ]]; then
    deps="$folder/deps"
    mv "$folder/clone/.deps" "$deps"
  fi
  rm -rf "$folder/clone"
  git clone -q . "$folder/clone"
  [[ -z $deps ]] || mv "$deps" "$folder/clone/.deps"
}

for step in "$@"; do
  fresh_clone
  case "$step" in
    setup) timed setup tools/setup.sh ;;
    run) timed run tools/run.sh ;;
    test) timed test tools/test.sh ;;
    pip)
      in_debian 'cd /clone && tools/setup.sh && apt-get -qq -y install python3-dev >/dev/null &&
        python3 -m venv --clear /venv'
      timed pip '. /venv/bin/activate && pip install -q .'
      use_package
      ;;
    ci) timed ci .ci/run ;;
    *) echo "time_fresh: no step '$step'; the steps are setup, run, test, pip, ci" >&2; exit 2 ;;
  esac
done
