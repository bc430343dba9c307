// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks on Google Benchmark share: their flags, and how a call is timed and related
// to the FMA peak. main() is in common.cc.
//
// A benchmark's counters:
//  - GFLOP/s, of integers GOP/s: by the median of many samples, each a call or as many as fill
//    20 us.
//  - best: GFLOP/s of the fastest sample.
//  - peak: GFLOP/s of multiply-adds of that precision on as many threads, measured every 20 ms
//  between the samples;
//    the median.
//  - share: the median over the samples of GFLOP/s / the larger one of the peaks before and after.
//    Clocks change in the course of a run, so both sides of the quotient are always neighbours.
//  - best_share: best / the largest peak of the run.
//  - Gelem/s, GB/s, tokens/s: where they say more, by the median. GB/s counts the weights (cold) or
//    input and output.
//  - pool_threads: of encore; and the label is the SIMD target.
// The column Time is the mean. On a machine with other work it is the least trustworthy figure and
// the share the most. Calls longer than the scheduler's time slice (milliseconds) then need
// --clock=cpu; there best means little, since the system books a thread's time unevenly.

#ifndef ENCORE_BENCH_COMMON_H_
#define ENCORE_BENCH_COMMON_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/forward.h"
#include "bench/measure/threads.h"
#include "encore/precision.h"
#include "encore/status.h"
#include "encore/tensor.h"

namespace encore::bench {

// Each bench_*.cc defines it: registers its benchmarks. Called after the flags were read.
void RegisterBenchmarks();

// The thread counts to measure with: 1 and all usable cores, or what --threads says.
const std::vector<int>& ThreadCounts();

// What --precision says, f32 by default. Benchmarks of whole encoders ask for it when they are
// registered; others refuse the flag.
Precision ChosenPrecision();

// What one call does; 0 where it does not apply.
struct Work {
  double flops = 0;
  double elements = 0;
  double bytes = 0;
  double tokens = 0;
  Precision precision = Precision::kF32;  // whose peak the share is of
};

// Times call(i), i counting calls, and sets the counters. A Status that is not ok ends the
// benchmark with its message.
void Measure(benchmark::State& state, int threads, const Work& work,
             const std::function<Status(size_t)>& call);

// Registers a benchmark that runs body(state), timed by Measure.
void Register(const std::string& name, std::function<void(benchmark::State&)> body);

// Keeps one thing that is costly to make from run to run of the benchmarks that share it: Google
// Benchmark calls a body several times, and holding the weights of all benchmarks at once would
// take too much memory. Returns make()'s value, anew if the last call had another key; one slot for
// each type.
template <typename T>
T& Kept(const std::string& key, const std::function<T()>& make) {
  static std::string kept_key;
  static std::unique_ptr<T> kept;
  if (kept == nullptr || kept_key != key) {
    kept.reset();  // first, so that the two are never there together
    kept = std::make_unique<T>(make());
    kept_key = key;
  }
  return *kept;
}

// The value; ends the process with the message if there is none.
[[noreturn]] void Fail(const Status& status);
template <typename T>
T OrFail(Result<T> result) {
  if (!result.ok()) Fail(result.status());
  return *std::move(result);
}

// Uniform in [low, high), the same numbers each time; and zeros. End the process if there is no
// memory.
inline Tensor RandomTensor(const Shape& shape, float low = -1.0f, float high = 1.0f) {
  return OrFail(DrawTensor(shape, low, high));
}
inline Tensor ZeroTensor(const Shape& shape) { return OrFail(Tensor::Create(DType::kF32, shape)); }

}  // namespace encore::bench

#endif  // ENCORE_BENCH_COMMON_H_
