// SPDX-License-Identifier: Apache-2.0
//
// How fast the machine's threads read each level of its memory at this moment: the other roof that
// figures are related to.

#ifndef ENCORE_BENCH_MEASURE_READ_H_
#define ENCORE_BENCH_MEASURE_READ_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "encore/executor.h"
#include "encore/status.h"
#include "engine/base/aligned_buffer.h"

namespace encore::bench {

struct ReadLevel {
  std::string name;     // "L1", "L2", "L3", "memory"
  size_t bytes = 0;     // of a thread's buffer
  size_t capacity = 0;  // what of the level so many threads have together; memory: SIZE_MAX
};

// Nearest first. A thread's buffer is half of its L1 or L2, and its part of half of L3; in memory
// it is 16 times its part of L3, 64 MiB at the least and, so that a machine with much cache can
// be measured at all, 4 GiB for all threads together at the most. A level is left out where the
// system does not tell its size, and L3 where that part of it is no more than twice L2.
std::vector<ReadLevel> ReadLevels(int threads);

// The nearest level that has room for so many bytes: in it weights may stay from call to call.
// Memory only from twice the last cache on, as less may stay there in part.
const ReadLevel& LevelFor(double bytes, const std::vector<ReadLevel>& levels);

class ReadMeter {
 public:
  // With a buffer of `bytes`, rounded to whole KiBs, for each of the executor's threads; on the
  // active SIMD target. kOutOfMemory.
  static Result<ReadMeter> Create(const Executor& executor, size_t bytes);

  // Bytes a second of all threads together, now: from the first one's start to the last one's end,
  // the best of some windows of a millisecond, or as long as one round takes. Of a buffer of
  // 256 MiB or more, of all of it once, in windows of equal parts of 64 MiB or less.
  double Measure();

 private:
  ReadMeter() = default;
  double Window(size_t rounds);

  Executor executor_;
  double (*read_)(const uint32_t* data, size_t count, size_t rounds, uint32_t* sink) = nullptr;
  std::vector<internal::AlignedBuffer<uint32_t>> buffers_;
  size_t rounds_ = 0;  // that fill a window; 0 if not known yet
  size_t part_ = 0;    // of a buffer, that a window reads
  size_t next_ = 0;    // where the next window begins
};

}  // namespace encore::bench

#endif  // ENCORE_BENCH_MEASURE_READ_H_
