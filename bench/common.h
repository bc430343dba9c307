// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks on Google Benchmark share: their flags, and how a call is timed and related
// to the FMA peak. main() is in common.cc.
//
// Names and counters are explained in docs/benchmarks.md.

#ifndef ENCORE_BENCH_COMMON_H_
#define ENCORE_BENCH_COMMON_H_

#include <benchmark/benchmark.h>

#include <cctype>
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

// Seconds of the clock that --clock chose; other threads' time is not in that of one thread.
using ClockFn = double (*)();
ClockFn ClockOf(int threads);

// Binds the calling thread as long as it lives, as BindFor says.
class BoundThread {
 public:
  explicit BoundThread(int threads) { BindFor(threads); }
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;
  ~BoundThread() { BindFor(0); }
};

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

// "f32", "int8": as PrecisionName has it.
inline std::string TypeName(DType type) {
  std::string name(type == DType::kI8 ? "int8" : DTypeName(type));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// Uniform in [low, high), the same numbers each time; and zeros. End the process if there is no
// memory.
inline Tensor RandomTensor(const Shape& shape, float low = -1.0f, float high = 1.0f) {
  return OrFail(DrawTensor(shape, low, high));
}
inline Tensor ZeroTensor(const Shape& shape) { return OrFail(Tensor::Create(DType::kF32, shape)); }

}  // namespace encore::bench

#endif  // ENCORE_BENCH_COMMON_H_
