// SPDX-License-Identifier: Apache-2.0
//
// Which floats are tried, and what threads found put together.

#include "reference/exhaustive/search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>

#include "reference/exhaustive/chunk.h"
#include "reference/hard_floats.h"

namespace encore::tool {
namespace {

using Targets = std::vector<const TargetKernels*>;

// Consecutive floats on either side of a hard one.
constexpr uint32_t kStretch = kChunkFloats / 2;

struct HardChunk {
  std::vector<float> x;
  bool ordered;
};

std::vector<HardChunk> HardChunks(const Subject& subject, int count) {
  const auto no_argument = [&](float x) { return subject.non_positive_only() && !std::signbit(x); };
  std::vector<HardChunk> chunks;
  std::vector<float> x = reference::HardFloats(count);
  std::erase_if(x, no_argument);
  // Sorted by bits, so that a chunk lies within few binades.
  std::sort(x.begin(), x.end(), [](float a, float b) {
    return std::bit_cast<uint32_t>(a) < std::bit_cast<uint32_t>(b);
  });
  for (auto begin = x.begin(); begin != x.end();) {
    const auto end = begin + std::min<ptrdiff_t>(kChunkFloats, x.end() - begin);
    chunks.push_back({{begin, end}, false});
    begin = end;
  }
  for (const float hard : reference::kHardFloats) {
    if (no_argument(hard)) continue;
    const uint32_t sign = std::bit_cast<uint32_t>(hard) & 0x80000000u;
    const uint32_t magnitude = std::bit_cast<uint32_t>(hard) & 0x7FFFFFFFu;
    const uint32_t first = magnitude < kStretch ? 0 : magnitude - kStretch;
    const uint32_t last = std::min(0x7FFFFFFFu, magnitude + kStretch);
    x.clear();
    for (uint32_t bits = first; bits <= last; ++bits)
      x.push_back(std::bit_cast<float>(bits | sign));
    chunks.push_back({x, true});
  }
  return chunks;
}

std::vector<TargetRecord> Walk(const Subject& subject, const Targets& targets, uint64_t step,
                               int hard_floats, const OnProgress& progress) {
  const std::vector<HardChunk> hard = HardChunks(subject, hard_floats);
  const uint64_t first = subject.non_positive_only() ? kAllFloats / 2 : 0;
  const uint64_t total = (kAllFloats - first + step - 1) / step;
  const uint64_t chunks = (total + kChunkFloats - 1) / kChunkFloats;
  const auto make = [&] { return std::make_unique<ChunkTrier>(subject, targets); };
  const auto try_chunk = [&](const std::unique_ptr<ChunkTrier>& trier, uint64_t chunk) {
    if (chunk < hard.size()) {
      trier->Try(hard[chunk].x.data(), hard[chunk].x.size(), hard[chunk].ordered);
      return;
    }
    // With the first float of the next chunk, so that all neighbours meet.
    const uint64_t at = (chunk - hard.size()) * kChunkFloats;
    const size_t count = static_cast<size_t>(std::min<uint64_t>(kChunkFloats + 1, total - at));
    std::array<float, kChunkFloats + 1> x;
    for (size_t i = 0; i < count; ++i) {
      x[i] = std::bit_cast<float>(static_cast<uint32_t>(first + (at + i) * step));
    }
    trier->Try(x.data(), count, true);
  };
  std::vector<TargetRecord> records(targets.size());
  for (const auto& trier : WalkChunks(hard.size() + chunks, make, try_chunk, progress)) {
    for (size_t t = 0; t < targets.size(); ++t) records[t].Merge(trier->records()[t]);
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
    if (!right) wrong.Add({1, std::bit_cast<uint32_t>(value.x)});
  }
  for (const uint32_t bits : reference::kNanBits) {
    if (!std::isnan(run(std::bit_cast<float>(bits)))) wrong.Add({1, bits});
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
  result.falls = record.falls;
  result.differs = record.differs;
  result.wrong_special = WrongSpecials(subject, target);
  return result;
}

}  // namespace

std::vector<TargetResult> Search(const Subject& subject, const std::vector<TargetKernels>& targets,
                                 const SearchPlan& plan, const OnProgress& progress) {
  std::vector<TargetResult> results(targets.size());
  const auto walk = [&](const std::vector<size_t>& chosen, uint64_t step, double from, double to) {
    Targets kernels;
    for (const size_t t : chosen) kernels.push_back(&targets[t]);
    const std::vector<TargetRecord> records =
        Walk(subject, kernels, step, plan.hard, [&](double done) {
          if (progress) progress(from + (to - from) * done);
        });
    const auto base = std::find_if(kernels.begin(), kernels.end(),
                                   [](const TargetKernels* target) { return target->fma; });
    for (size_t i = 0; i < chosen.size(); ++i) {
      TargetResult& result = results[chosen[i]];
      result = ResultOf(subject, *kernels[i], step, records[i]);
      if (kernels[i]->fma && kernels[i] != *base) result.same_as = (*base)->name;
    }
  };
  // The best and AVX2 stand for both widths of vectors that the promise is about. Others are
  // compared with the best, whose own result is that of the dense walk.
  std::vector<size_t> dense;
  std::vector<size_t> others = {0};
  for (size_t t = 0; t < targets.size(); ++t) {
    const bool all = plan.others_step <= plan.step || t == 0 || targets[t].name == "AVX2";
    (all ? dense : others).push_back(t);
  }
  const double share = others.size() > 1 ? 0.05 : 0;
  if (others.size() > 1) walk(others, plan.others_step, 0, share);
  walk(dense, plan.step, share, 1);
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
