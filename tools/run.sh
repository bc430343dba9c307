#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From a bare machine to the command line at work: sets the machine up, builds encore and runs
# `encore demo`, or `encore` with the arguments given.
#
#   tools/run.sh                                        encore demo
#   tools/run.sh attend "The cat sat on the mat"        encore attend ...

set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

"$here/setup.sh"
"$here/build.sh" build/release --target encore_tool
exec "$here/../build/release/bin/encore" "${@:-demo}"
