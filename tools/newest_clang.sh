#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the command of the newest Clang that is installed, if it is version $1 or newer; otherwise
# prints nothing and fails.
#
#   tools/newest_clang.sh 17

set -euo pipefail

wanted="$1"
newest=0
found=
for command in clang++ $(compgen -c clang++- | grep -x 'clang++-[0-9]*' | sort -u); do
  # As in "Debian clang version 19.1.7 (3)".
  version=$("$command" --version 2>/dev/null |
            sed -n '1s/.*clang version \([0-9]*\).*/\1/p') || true
  if [[ -n "$version" && "$version" -gt "$newest" ]]; then
    newest="$version"
    found="$command"
  fi
done
[[ "$newest" -ge "$wanted" ]] && echo "$found"
