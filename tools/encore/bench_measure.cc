// SPDX-License-Identifier: Apache-2.0
//
// The timing loop of `encore bench`.

#include "tools/encore/bench_measure.h"

#include <algorithm>
#include <string>
#include <utility>

#include "bench/measure/forward.h"
#include "bench/measure/os.h"
#include "bench/measure/samples.h"
#include "bench/measure/threads.h"
#include "encore/cpu.h"
#include "encore/executor.h"
#include "tools/encore/failure.h"

namespace encore::tool {
namespace {

// A model has at least that many layers to go through before it meets the first one again.
constexpr size_t kMinColdLayers = 12;
constexpr size_t kMinCalls = 3;
constexpr double kMaxWarmUpSeconds = 0.1;

bool SameModel(const bench::Model& a, const bench::Model& b) {
  return a.d_model == b.d_model && a.heads == b.heads && a.d_ff == b.d_ff &&
         a.activation == b.activation;
}

// Binds the calling thread, so that it keeps its caches on a machine with other work. With several
// threads it must be free: those that it starts inherit its mask.
void BindFor(int threads) {
  static const bench::CoreMask cores;
  cores.Bind(threads == 1 ? cores.Last() : -1);
}

}  // namespace

const Encoder& BenchMeasurer::EncoderOf(const bench::Model& model, size_t layers) {
  if (encoder_.empty() || !SameModel(model, model_) ||
      encoder_.front().config().num_layers() != layers) {
    encoder_.clear();  // before there is another: they are large
    encoder_ = Take(bench::MakeEncoders(model, layers, 1, precision_), model.name);
    model_ = model;
  }
  return encoder_.front();
}

BenchRow BenchMeasurer::Measure(const bench::NamedWorkload& workload, int threads, bool cold) {
  BindFor(threads);
  const size_t bytes = bench::LayerBytes(workload.model, precision_);
  const size_t layers = cold ? std::max(kMinColdLayers, bench::CopiesForCold(bytes)) : 1;
  const Executor executor = Take(bench::ExecutorOf(threads), std::to_string(threads) + " threads");
  bench::ForwardCall call = Take(
      bench::ForwardCall::Create({EncoderOf(workload.model, layers)}, workload.lengths, executor),
      workload.name);
  bench::Samples samples(executor, precision_);

  size_t index = 0;
  const double warm_up = std::min(seconds_, kMaxWarmUpSeconds);
  const double start = bench::WallSeconds();
  for (double now = start; index == 0 || now - start < warm_up; now = bench::WallSeconds()) {
    Check(call.Run(index++), workload.name);
  }
  // The peak is measured outside of the calls' time, and counts as none of the seconds.
  double spent = 0;
  while (samples.count() < kMinCalls || spent < seconds_) {
    const double seconds = bench::SecondsOf([&] { Check(call.Run(index++), workload.name); });
    spent += seconds;
    samples.Add(seconds / static_cast<double>(layers));
  }
  samples.Finish();
  BindFor(0);

  const double median = samples.SecondsAt(0.5);
  const double flops = bench::LayerFlops(workload.model, workload.lengths);
  return {.workload = &workload,
          .precision = precision_,
          .threads = threads,
          .cold = cold,
          .target = ActiveTarget(),
          .calls = samples.count(),
          .us_min = samples.SecondsAt(0) * 1e6,
          .us_median = median * 1e6,
          .us_p99 = samples.SecondsAt(0.99) * 1e6,
          .gflops = flops / median * 1e-9,
          .peak_gflops = samples.PeakFlops() * 1e-9,
          .share = samples.Share(flops),
          .gbytes_per_s = static_cast<double>(bytes) / median * 1e-9,
          .tokens_per_s = static_cast<double>(call.tokens()) / median};
}

}  // namespace encore::tool
