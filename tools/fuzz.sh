#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the fuzz targets and runs each for a fixed number of inputs: with clang's libFuzzer,
# AddressSanitizer and UndefinedBehaviorSanitizer, or on the library as it is released. The targets
# are in tests/fuzz, their seeds in tests/data/fuzz.
#
#   tools/fuzz.sh                       each target, 20,000 inputs
#   tools/fuzz.sh --runs N NAME ...     those targets, N inputs each; 0: until stopped
#   tools/fuzz.sh --release ...         the same on the release library, kernels of every SIMD
#                                       target included: random changes of the seeds, by as many
#                                       processes as JOBS says (default: the cores), each with N
#                                       inputs of its own
#   tools/fuzz.sh --build FOLDER ...    the targets that are built in FOLDER, e.g. beside tests
#
# SEED (default 1) is the random seed, of the first process. The same build, seeds and corpus give
# the same inputs again, as long as the system lists the files in the same order. Hours of it, with
# another seed each time: `SEED=100 tools/fuzz.sh --runs 0 encoder`, or `SEED=100 tools/fuzz.sh
# --release --runs 100000000 operations`.
#
# What libFuzzer learns stays in build/fuzz/corpus/NAME and is used again. An input that breaks a
# promise ends the run and lies in build/fuzz or build/fuzz-release; it belongs into tests/data/fuzz
# once that is mended.

set -euo pipefail
# Short stacks of allocations: recording them takes time.
export ASAN_OPTIONS="${ASAN_OPTIONS:-malloc_context_size=5:quarantine_size_mb=32}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

runs=20000
release=no
folder=build/fuzz
build_them=yes
while [[ "${1:-}" == --* ]]; do
  case "$1" in
    --runs) runs="$2"; shift ;;
    --release) release=yes ;;
    --build) folder="$2" build_them=no; shift ;;
    *) echo "fuzz.sh: unknown argument '$1'" >&2; exit 2 ;;
  esac
  shift
done
names=("$@")
[[ $# -eq 0 ]] && mapfile -t names < <(cd tests/data/fuzz && ls)

# All that a fuzz target does not need is left out.
build() {
  tools/build.sh "$@" -DENCORE_BUILD_FUZZERS=ON -DENCORE_BUILD_TESTS=OFF -DENCORE_BUILD_TOOLS=OFF \
    -DENCORE_BUILD_BENCHMARKS=OFF -DENCORE_INSTALL=OFF
}

# One target by one process.
run_sanitized() {
  local name="$1" log="build/fuzz/$1.log" started=$SECONDS executed covered
  mkdir -p "build/fuzz/corpus/$name"
  # Not entropic: choosing inputs would take longer than running them.
  if ! "$folder/tests/fuzz/fuzz_$name" -runs="$([[ $runs -eq 0 ]] && echo -1 || echo "$runs")" \
      -seed="${SEED:-1}" -max_len=6000 -timeout=10 -entropic=0 -print_final_stats=1 \
      -dict=tests/fuzz/words.dict -artifact_prefix="build/fuzz/$name-" \
      "build/fuzz/corpus/$name" "tests/data/fuzz/$name" \
      >"$log" 2>&1; then
    grep -v '^#' "$log" | tail -n 60 >&2
    echo "fuzz: $name failed; all of it is in $log" >&2
    return 1
  fi
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
  echo "fuzz: $name: $executed inputs in $((SECONDS - started)) s, $covered edges, no finding"
}

# One target by several processes.
run_release() {
  local name="$1" seed="${SEED:-1}" jobs="${JOBS:-$(nproc)}" failed=no logs=() i
  pids=()
  for ((i = 0; i < jobs; ++i)); do
    logs+=("build/fuzz-release/$name-$((seed + i)).log")
    # 2^63 runs: until stopped.
    build/fuzz-release/tests/fuzz/fuzz_standalone "$name" --seed $((seed + i)) \
      --runs "$([[ $runs -eq 0 ]] && echo 9223372036854775808 || echo "$runs")" \
      --keep "build/fuzz-release/$name-$((seed + i)).input" "tests/data/fuzz/$name" \
      >"${logs[i]}" 2>&1 &
    pids+=($!)
  done
  for ((i = 0; i < jobs; ++i)); do
    if wait "${pids[i]}"; then
      echo "fuzz: $name, seed $((seed + i)): $(grep ' runs in ' "${logs[i]}" | tail -n 1)," \
        "no finding"
    else
      tail -n 5 "${logs[i]}" >&2
      echo "fuzz: $name, seed $((seed + i)) failed; its input lies beside ${logs[i]}" >&2
      failed=yes
    fi
  done
  pids=()
  [[ $failed == no ]]
}

if [[ $release == yes ]]; then
  # Processes in the background do not hear of Ctrl-C.
  pids=()
  trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
  trap 'exit 130' INT TERM
  build build/fuzz-release --target fuzz_standalone
  for name in "${names[@]}"; do run_release "$name"; done
  exit 0
fi
# The kernels as portable code without sanitizers, which makes them compile in seconds.
if [[ $build_them == yes ]]; then
  targets=()
  for name in "${names[@]}"; do targets+=(--target "fuzz_$name"); done
  CXX="${CXX:-clang++}" build "$folder" -DENCORE_SANITIZE=address,undefined -DENCORE_SIMD=emu128 \
    -DCMAKE_CXX_FLAGS_RELEASE="-O1" -DENCORE_QUICK_BUILD=ON "${targets[@]}"
fi
# A process each, as many at once as there are cores.
export -f run_sanitized
export runs folder
# shellcheck disable=SC2016  # the other shell's
printf '%s\0' "${names[@]}" | xargs -0 -n 1 -P "${JOBS:-$(nproc)}" \
  bash -euo pipefail -c 'run_sanitized "$1"' run_sanitized
