// SPDX-License-Identifier: Apache-2.0
//
// The walks over floats, and what threads found put together.

#include "tools/exhaustive/search.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

#include "encore/cpu.h"
#include "tests/reference/hard_floats.h"
#include "tools/exhaustive/chunk.h"

namespace encore::tool {
namespace {

using Targets = std::vector<const TargetKernels*>;

// Chunks that a thread takes at a time.
constexpr uint64_t kChunksAtOnce = 16;

// Consecutive floats on either side of a hard one.
constexpr uint32_t kStretch = kChunkFloats / 2;

// Threads that share a walk. Should one of them not start, the others take no more chunks.
struct WalkingThreads {
  ~WalkingThreads() {
    next.store(end, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
  }
  std::atomic<uint64_t>& next;
  uint64_t end;
  std::vector<std::thread> threads{};
};

void TryHard(const Subject& subject, const SearchPlan& plan, ChunkTrier& trier) {
  std::vector<float> x;
  for (const float hard : plan.hard) {
    if (!subject.non_positive_only() || std::signbit(hard)) x.push_back(hard);
  }
  // Sorted by bits, so that a chunk lies within few binades.
  std::sort(x.begin(), x.end(), [](float a, float b) {
    return std::bit_cast<uint32_t>(a) < std::bit_cast<uint32_t>(b);
  });
  for (size_t i = 0; i < x.size(); i += kChunkFloats) {
    trier.Try(x.data() + i, std::min(kChunkFloats, x.size() - i), false);
  }
  for (const float hard : plan.hard.first(std::min(plan.stretches, plan.hard.size()))) {
    if (subject.non_positive_only() && !std::signbit(hard)) continue;
    const uint32_t sign = std::bit_cast<uint32_t>(hard) & 0x80000000u;
    const uint32_t magnitude = std::bit_cast<uint32_t>(hard) & 0x7FFFFFFFu;
    const uint32_t first = magnitude < kStretch ? 0 : magnitude - kStretch;
    const uint32_t last = std::min(0x7FFFFFFFu, magnitude + kStretch);
    x.clear();
    for (uint32_t bits = first; bits <= last; ++bits)
      x.push_back(std::bit_cast<float>(bits | sign));
    trier.Try(x.data(), x.size(), true);
  }
}

std::vector<TargetRecord> Walk(const Subject& subject, const Targets& targets, uint64_t step,
                               const SearchPlan& plan,
                               const std::function<void(double)>& progress) {
  const uint64_t first = subject.non_positive_only() ? kAllFloats / 2 : 0;
  const uint64_t total = (kAllFloats - first + step - 1) / step;
  const uint64_t chunks = (total + kChunkFloats - 1) / kChunkFloats;
  std::atomic<uint64_t> next{0};
  std::vector<TargetRecord> records(targets.size());
  std::mutex mutex;
  const auto work = [&](bool reports) {
    const auto trier = std::make_unique<ChunkTrier>(subject, targets);
    if (reports) TryHard(subject, plan, *trier);
    std::vector<float> x(kChunkFloats + 1);
    for (;;) {
      const uint64_t begin = next.fetch_add(kChunksAtOnce, std::memory_order_relaxed);
      if (begin >= chunks) break;
      for (uint64_t c = begin; c < std::min(chunks, begin + kChunksAtOnce); ++c) {
        // With the first float of the next chunk, so that all neighbours meet.
        const uint64_t at = c * kChunkFloats;
        const size_t count = static_cast<size_t>(std::min<uint64_t>(kChunkFloats + 1, total - at));
        for (size_t i = 0; i < count; ++i) {
          x[i] = std::bit_cast<float>(static_cast<uint32_t>(first + (at + i) * step));
        }
        trier->Try(x.data(), count, true);
      }
      if (reports && progress) progress(static_cast<double>(begin) / static_cast<double>(chunks));
    }
    const std::lock_guard lock(mutex);
    for (size_t t = 0; t < targets.size(); ++t) records[t].Merge(trier->records()[t]);
  };
  {
    WalkingThreads walking{next, chunks};
    for (int i = 1; i < UsableCores(); ++i) walking.threads.emplace_back(work, false);
    work(true);
  }
  return records;
}

// The error of a record as the promise defines it.
Peak PeakOf(const Subject& subject, size_t measure, const Record& record) {
  const float x = std::bit_cast<float>(record.x_bits);
  return {record.error_bits == 0 ? 0.0 : subject.Error(measure, x, record.y), x, record.y};
}

Count WrongSpecials(const Subject& subject, const TargetKernels& kernels) {
  Count wrong;
  const auto run = [&](float x) {
    float y = 42;
    subject.Run(kernels, &x, &y, 1);
    return y;
  };
  for (const SpecialValue& value : subject.special_values()) {
    const float y = run(value.x);
    const bool right = std::bit_cast<uint32_t>(y) == std::bit_cast<uint32_t>(value.y) ||
                       (value.either_zero && y == 0);
    if (!right) Add(wrong, {1, std::bit_cast<uint32_t>(value.x)});
  }
  for (const uint32_t bits : reference::kNanBits) {
    if (!std::isnan(run(std::bit_cast<float>(bits)))) Add(wrong, {1, bits});
  }
  return wrong;
}

TargetResult ResultOf(const Subject& subject, const TargetKernels& target, uint64_t step,
                      const TargetRecord& record) {
  TargetResult result;
  result.target = target.name;
  result.fma = target.fma;
  result.step = step;
  for (size_t m = 0; m < subject.measures().size(); ++m) {
    std::vector<Peak> peaks;
    for (const Record& binade : record.binades[m]) {
      if (binade.error_bits != 0) peaks.push_back(PeakOf(subject, m, binade));
    }
    std::stable_sort(peaks.begin(), peaks.end(),
                     [](const Peak& a, const Peak& b) { return a.error > b.error; });
    result.worst.push_back(peaks.empty() ? Peak{} : peaks.front());
    if (m == 0) result.peaks = std::move(peaks);
  }
  const float jump = std::bit_cast<float>(record.jump.error_bits);
  result.jump = {static_cast<double>(jump), std::bit_cast<float>(record.jump.x_bits),
                 record.jump.y};
  result.falls = record.falls;
  result.differs = record.differs;
  result.wrong_special = WrongSpecials(subject, target);
  return result;
}

}  // namespace

std::vector<TargetResult> Search(const Subject& subject, const std::vector<TargetKernels>& targets,
                                 const SearchPlan& plan,
                                 const std::function<void(double)>& progress) {
  // The best and AVX2 stand for both widths of vectors that the promise is about.
  const bool two_walks = plan.others_step > plan.step;
  const auto dense = [&](size_t t) { return !two_walks || t == 0 || targets[t].name == "AVX2"; };
  std::vector<TargetResult> results(targets.size());
  const auto walk = [&](const std::vector<size_t>& chosen, uint64_t step, bool keep_first,
                        const std::function<void(double)>& report) {
    Targets kernels;
    for (const size_t t : chosen) kernels.push_back(&targets[t]);
    const std::vector<TargetRecord> records = Walk(subject, kernels, step, plan, report);
    const auto base = std::find_if(kernels.begin(), kernels.end(),
                                   [](const TargetKernels* target) { return target->fma; });
    for (size_t i = keep_first ? 0 : 1; i < chosen.size(); ++i) {
      TargetResult& result = results[chosen[i]];
      result = ResultOf(subject, *kernels[i], step, records[i]);
      if (kernels[i]->fma && kernels[i] != *base) result.same_as = (*base)->name;
    }
  };
  std::vector<size_t> first;
  std::vector<size_t> second = {0};  // again, for others to be compared with
  for (size_t t = 0; t < targets.size(); ++t) (dense(t) ? first : second).push_back(t);
  const double share = second.size() > 1 ? 0.95 : 1.0;
  const auto part = [&](double from, double to) {
    return [&progress, from, to](double done) {
      if (progress) progress(from + (to - from) * done);
    };
  };
  walk(first, plan.step, true, part(0, share));
  if (second.size() > 1) walk(second, plan.others_step, false, part(share, 1));
  return results;
}

double LargestFastError(const Subject& subject, uint64_t step) {
  double largest = 0;
  const uint64_t first = subject.non_positive_only() ? kAllFloats / 2 : 0;
  for (uint64_t bits = first; bits < kAllFloats; bits += step) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isfinite(x)) continue;
    const double exact = subject.Exact(x);
    if (std::fabs(exact) > 0x1p200) continue;  // inf in f32 either way
    double fast = 0;
    subject.FastExact(&x, &fast, 1);
    const double error = std::fabs(fast - exact) / std::max(std::fabs(exact), 0x1p-149);
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

}  // namespace encore::tool
