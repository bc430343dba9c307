#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sets the machine up, builds everything and runs all tests. Arguments go to ctest:
#
#   tools/test.sh                  all tests
#   tools/test.sh -R Softmax       those whose name has Softmax in it

set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

"$here/setup.sh"
"$here/build.sh" build/release
"$here/ctest.sh" build/release "$@"
