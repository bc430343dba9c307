#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of one build folder, quietly: the output of tests that fail is shown, the number of
# those that passed, and the names of those that left themselves out. Builds nothing.
#
#   tools/ctest.sh FOLDER [ctest arguments]

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder="$1"
shift
log="$folder/ctest.log"
echo "test: $folder (the log is $log)"
if ! ctest --test-dir "$folder" --output-on-failure --no-tests=error \
     --parallel "${JOBS:-$(nproc)}" "$@" >"$log" 2>&1; then
  # Everything but the lines of the tests that passed.
  grep -v -E '^ *[0-9]+/[0-9]+ Test .* Passed|^ *Start +[0-9]+:|^\[( RUN  |      OK|-----)' "$log" |
    tail -n 200 >&2
  echo "test: failed; all of it is in $log" >&2
  exit 1
fi
grep -E '^[0-9]+% tests passed|^Total Test time' "$log" | sed 's/^/test: /'
# Each of these is a file; the cases in them are GoogleTest's to count.
cases="$folder/Testing/Temporary/LastTest.log"
awk '/^\[  PASSED  \] [0-9]+ test/ { n += $4 } END { print "test: " n " cases passed" }' "$cases"
skipped=$(sed -nE 's/^\[  SKIPPED \] ([^ ]+) \([0-9]+ ms\)$/\1/p' "$cases")
[[ -z $skipped ]] || echo "left out: $(wc -l <<<"$skipped") tests: ${skipped//$'\n'/ }"
