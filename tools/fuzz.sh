#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the fuzz targets with clang, AddressSanitizer and UndefinedBehaviorSanitizer, and runs each
# for a fixed number of inputs. The targets are in tests/fuzz, their seeds in tests/data/fuzz.
#
#   tools/fuzz.sh                       each target, 20,000 inputs
#   tools/fuzz.sh --runs N NAME ...     those targets, N inputs each; 0: until stopped
#
# What libFuzzer learns stays in build/fuzz/corpus/NAME and is used again. An input that breaks a
# promise ends the run and lies in build/fuzz; it belongs into tests/data/fuzz once that is mended.

set -euo pipefail
# Short stacks of allocations: recording them takes time.
export ASAN_OPTIONS="${ASAN_OPTIONS:-malloc_context_size=5:quarantine_size_mb=32}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

runs=20000
if [[ "${1:-}" == --runs ]]; then
  runs="$2"
  shift 2
fi
[[ $runs -eq 0 ]] && runs=-1
names=("$@")
[[ $# -eq 0 ]] && mapfile -t names < <(cd tests/data/fuzz && ls)

targets=()
for name in "${names[@]}"; do targets+=(--target "fuzz_$name"); done
# The kernels as portable code without sanitizers, which makes them compile in seconds.
CXX="${CXX:-clang++}" tools/build.sh build/fuzz -DENCORE_BUILD_FUZZERS=ON \
  -DENCORE_SANITIZE=address,undefined -DENCORE_SIMD=emu128 -DCMAKE_CXX_FLAGS_RELEASE="-O1" \
  -DENCORE_BUILD_TESTS=OFF -DENCORE_BUILD_TOOLS=OFF -DENCORE_BUILD_BENCHMARKS=OFF \
  -DENCORE_INSTALL=OFF -DENCORE_QUICK_BUILD=ON "${targets[@]}"

for name in "${names[@]}"; do
  mkdir -p "build/fuzz/corpus/$name"
  log="build/fuzz/$name.log"
  started=$SECONDS
  # Not entropic: choosing inputs would take longer than running them.
  if ! "build/fuzz/tests/fuzz/fuzz_$name" -runs="$runs" -max_len=6000 -timeout=10 -entropic=0 \
      -print_final_stats=1 -dict=tests/fuzz/words.dict -artifact_prefix="build/fuzz/$name-" \
      "build/fuzz/corpus/$name" "tests/data/fuzz/$name" >"$log" 2>&1; then
    grep -v '^#' "$log" | tail -n 60 >&2
    echo "fuzz: $name failed; all of it is in $log" >&2
    exit 1
  fi
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  echo "fuzz: $name: $executed inputs in $((SECONDS - started)) s, no finding"
done
