#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests/process/soak_test.cc for longer than the tests do: a process that opens models,
# encodes, meets errors, makes and ends pools, and whose memory, descriptors and threads must not
# grow. They are printed at twenty intervals. Before it, the property tests with seeds drawn afresh,
# which are printed.
#
#   tools/soak.sh                        for 15 minutes
#   tools/soak.sh --seconds N            for N seconds
#   tools/soak.sh --seconds N FOLDER     of the build in FOLDER; else of build/release, which is
#                                        built first

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=900
if [[ "${1:-}" == --seconds ]]; then
  seconds="$2"
  shift 2
fi
folder="${1:-build/release}"
[[ $# -gt 0 ]] || tools/build.sh "$folder" --target process_test --target contract_test
for test in contract_property text_property; do
  seed=$((RANDOM * 32768 + RANDOM))
  echo "$test: ENCORE_PROPERTY_SEED=$seed"
  ENCORE_PROPERTY_SEED=$seed "$folder/tests/contract_test" "--file=${test}_test.cc"
done
ENCORE_SOAK_SECONDS="$seconds" exec "$folder/tests/process_test" --file=soak_test.cc
