// SPDX-License-Identifier: Apache-2.0
//
// One step of the exhaustive search: a chunk of floats on every target, and what one thread knows
// of each target so far.

#ifndef ENCORE_REFERENCE_EXHAUSTIVE_CHUNK_H_
#define ENCORE_REFERENCE_EXHAUSTIVE_CHUNK_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/exhaustive/subject.h"
#include "reference/exhaustive/walk.h"

namespace encore::tool {

// Small enough for all arrays of a chunk to lie in a core's nearer caches.
inline constexpr size_t kChunkFloats = 2048;
inline constexpr size_t kMostMeasures = 4;
inline constexpr size_t kBinades = 512;  // of a sign and an exponent

// An error as the bits of its magnitude: ordered as integers, NaN above all.
struct Record {
  int32_t error_bits = 0;
  uint32_t x_bits = 0;
  float y = 0;
};
void KeepLarger(Record& record, const Record& other);

struct TargetRecord {
  std::array<std::array<Record, kBinades>, kMostMeasures> binades;
  Count falls;
  Count differs;

  void Merge(const TargetRecord& other);
};

class ChunkTrier {
 public:
  ChunkTrier(const Subject& subject, std::span<const TargetKernels* const> targets);

  // x: [count], count <= kChunkFloats + 1, in the order of bits. `ordered`: they are neighbours in
  // the walk and compared as such.
  void Try(const float* x, size_t count, bool ordered);

  const std::vector<TargetRecord>& records() const { return records_; }  // one a target

 private:
  using Floats = std::array<float, kChunkFloats + 1>;
  // Results of a chunk and what they are worth; targets with the same results share it.
  struct Outcome {
    alignas(64) Floats y;
    std::array<Floats, kMostMeasures> errors;
    std::array<int32_t, kMostMeasures> largest;  // as bits
    Count falls;
  };

  void Judge(const float* x, bool ordered, Outcome& outcome) const;
  Count CountFalls(const float* x, const Outcome& outcome) const;
  Count CountDifferences(const float* x, const Floats& y, const Floats& want) const;
  void Keep(const float* x, const Outcome& outcome, TargetRecord& record) const;

  const Subject& subject_;
  std::vector<const TargetKernels*> targets_;
  std::vector<TargetRecord> records_;
  std::vector<Outcome> outcomes_;  // with FMA, without, and one that is neither
  std::array<double, kChunkFloats + 1> exact_;
  alignas(64) Floats y_;
  size_t count_ = 0;
};

}  // namespace encore::tool

#endif  // ENCORE_REFERENCE_EXHAUSTIVE_CHUNK_H_
