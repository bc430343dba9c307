#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sets the machine up, builds everything and runs all tests. Arguments go to ctest:
#
#   tools/test.sh                  all tests
#   tools/test.sh -R softmax       those whose name has softmax in it
#   tools/test.sh -L quick         a minute's worth

set -euo pipefail
[[ "${1:-}" != --help ]] || exec sed -n '4,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

"$here/setup.sh"
"$here/build.sh" build/release
"$here/ctest.sh" build/release "$@"
