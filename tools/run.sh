#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From a bare machine to real vectors: sets the machine up, builds encore, fetches a model and shows
# what it says of three sentences; where the model cannot be had, it says so and runs a demo that
# needs none. With arguments it runs `encore` with them.
#
#   tools/run.sh                                        encore demo --model ...
#   tools/run.sh attend "The cat sat on the mat"        encore attend ...

set -euo pipefail
[[ "${1:-}" != --help ]] || exec sed -n '4,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
encore="$here/../build/release/bin/encore"

"$here/setup.sh"
"$here/build.sh" build/release --target encore_tool
[[ $# -eq 0 ]] || exec "$encore" "$@"

if "$here/fetch_model.sh"; then
  cd "$here/.."
  exec build/release/bin/encore demo --model .deps/models/all-MiniLM-L6-v2
fi
echo "left out: sentences and their vectors; this is the demo that needs no model"
exec "$encore" demo
