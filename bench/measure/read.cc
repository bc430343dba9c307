// SPDX-License-Identifier: Apache-2.0
//
// Buffers for each level, and the clock around the loop that reads them.

#include "bench/measure/read.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "bench/measure/forward.h"
#include "bench/measure/os.h"
#include "bench/measure/roof_kernels.h"
#include "encore/cpu.h"
#include "engine/platform/core_domains.h"
#include "engine/platform/system_file.h"
#include "engine/platform/thread_team.h"

namespace encore::bench {
namespace {

constexpr int kReadWindows = 5;
constexpr double kReadWindowSeconds =
    1e-3;  // beside which threads that start apart by us do not count
// From this size on a window reads one of equal parts: the whole takes a tenth of a second.
// Not of those that are to stay in L3, which takes some rounds through all of them.
constexpr size_t kInParts = size_t{256} << 20;
constexpr size_t kPart = size_t{64} << 20;
constexpr size_t kLeastMemory = size_t{64} << 20;

// How many cores share core 0's L3; all of them where that is unknown.
size_t CoresOfAnL3() {
  const std::string list =
      internal::ReadSystemFile("/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list");
  const size_t cores = internal::ParseCoreList(list).size();
  return cores > 0 ? cores : std::numeric_limits<size_t>::max();
}

}  // namespace

std::vector<ReadLevel> ReadLevels(int threads) {
  const CacheSizes caches = Caches();
  const auto all = static_cast<size_t>(threads);
  const size_t sharers = std::min(all, CoresOfAnL3());
  std::vector<ReadLevel> levels;
  if (caches.l1d > 0) levels.push_back({"L1", caches.l1d / 2, caches.l1d * all});
  if (caches.l2 > 0) levels.push_back({"L2", caches.l2 / 2, caches.l2 * all});
  const size_t part = caches.l3 / 2 / sharers;
  const size_t memory =
      std::min(std::max(kLeastMemory, kColdTimesL3 * caches.l3 / sharers), kMostColdBytes / all);
  // Not where nothing could be read from memory alone.
  if (part > 2 * caches.l2 && part < memory / 2) {
    levels.push_back({"L3", part, caches.l3 * all / sharers});
  }
  levels.push_back({"memory", memory, std::numeric_limits<size_t>::max()});
  return levels;
}

const ReadLevel& LevelFor(double bytes, const std::vector<ReadLevel>& levels) {
  for (size_t i = 0; i + 1 < levels.size(); ++i) {
    const double room = static_cast<double>(levels[i].capacity);
    if (bytes <= (i + 2 < levels.size() ? room : 2 * room)) return levels[i];
  }
  return levels.back();
}

Result<ReadMeter> ReadMeter::Create(const Executor& executor, size_t bytes) {
  constexpr size_t kStep = internal::PeakKernels::kReadStep;
  ReadMeter meter;
  meter.executor_ = executor;
  meter.read_ = internal::GetPeakKernels().read;
  meter.buffers_.resize(static_cast<size_t>(executor.threads()));
  const size_t steps = std::max<size_t>(1, bytes / (kStep * sizeof(uint32_t)));
  for (auto& buffer : meter.buffers_) {
    if (!buffer.Allocate(steps * kStep)) {
      return Status(ErrorCode::kOutOfMemory, "no memory for buffers of " + std::to_string(bytes) +
                                                 " bytes a thread to measure reading with");
    }
  }
  const size_t parts = bytes < kInParts ? 1 : (bytes + kPart - 1) / kPart;
  meter.part_ = steps / parts * kStep;
  // By the threads that read them later: a page is allocated near the core that first writes to it.
  (void)internal::RunTeam(executor, [&](internal::Team& team) {
    team.ForEach(meter.buffers_.size(), [&](size_t i, int) {
      internal::AlignedBuffer<uint32_t>& buffer = meter.buffers_[i];
      for (size_t j = 0; j < buffer.size(); ++j) {
        buffer.data()[j] = static_cast<uint32_t>(j) * 2654435761u;
      }
    });
  });
  return meter;
}

double ReadMeter::Window(size_t rounds) {
  struct Span {
    double start = 0;
    double end = 0;
    double bytes = 0;
  };
  std::vector<Span> spans(buffers_.size());
  const size_t begin = next_ + part_ <= buffers_[0].size() ? next_ : 0;
  next_ = begin + part_;
  const auto read = [&](size_t i, size_t times) {
    uint32_t sink = 0;
    return read_(buffers_[i].data() + begin, part_, times, &sink);
  };
  (void)internal::RunTeam(executor_, [&](internal::Team& team) {
    // The first stage wakes the threads and fills caches, so that they start the next together.
    team.ForEach(spans.size(), [&](size_t i, int) { read(i, rounds > 1 ? rounds / 8 + 1 : 0); });
    team.ForEach(spans.size(), [&](size_t i, int) {
      spans[i].start = WallSeconds();
      spans[i].bytes = read(i, rounds);
      spans[i].end = WallSeconds();
    });
  });
  Span all{.start = spans[0].start, .end = spans[0].end};
  for (const Span& span : spans) {
    all.start = std::min(all.start, span.start);
    all.end = std::max(all.end, span.end);
    all.bytes += span.bytes;
  }
  return all.bytes / std::max(all.end - all.start, 1e-9);
}

double ReadMeter::Measure() {
  if (part_ < buffers_[0].size()) {  // the best of its parts would be luck
    const size_t parts = buffers_[0].size() / part_;
    double seconds_of_a_byte = 0;
    for (size_t i = 0; i < parts; ++i) seconds_of_a_byte += 1 / Window(1);
    return static_cast<double>(parts) / seconds_of_a_byte;
  }
  if (rounds_ == 0) {
    const double bytes =
        static_cast<double>(buffers_[0].size() * buffers_.size() * sizeof(uint32_t));
    Window(1);
    // Twice: of a small buffer, one round is over too soon to be measured.
    for (size_t pass = 0, rounds = 1; pass < 2; rounds = rounds_, ++pass) {
      rounds_ =
          std::max<size_t>(1, static_cast<size_t>(kReadWindowSeconds * Window(rounds) / bytes));
    }
  }
  double best = 0;
  for (int window = 0; window < kReadWindows; ++window) best = std::max(best, Window(rounds_));
  return best;
}

}  // namespace encore::bench
