// SPDX-License-Identifier: Apache-2.0
//
// Tries a chunk. Nearly all targets agree to the bit and nearly no chunk holds a new largest error,
// so those two are what is fast.

#include "reference/exhaustive/chunk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace encore::tool {
namespace {

constexpr uint32_t kExponentBits = 0x7F800000u;

inline int32_t MagnitudeBits(float error) {
  return static_cast<int32_t>(std::bit_cast<uint32_t>(error) & 0x7FFFFFFFu);
}

bool HasSpecial(const float* x, size_t count) {
  uint32_t special = 0;
  for (size_t i = 0; i < count; ++i) {
    special |= (std::bit_cast<uint32_t>(x[i]) & kExponentBits) == kExponentBits ? 1u : 0u;
  }
  return special != 0;
}

int32_t LargestMagnitude(const float* errors, size_t count) {
  int32_t largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, MagnitudeBits(errors[i]));
  return largest;
}

size_t BinadeOf(float x) { return std::bit_cast<uint32_t>(x) >> 23; }

}  // namespace

void KeepLarger(Record& record, const Record& other) {
  // The first of equals, so that the order of threads does not show.
  if (other.error_bits > record.error_bits ||
      (other.error_bits == record.error_bits && other.x_bits < record.x_bits)) {
    record = other;
  }
}

void TargetRecord::Merge(const TargetRecord& other) {
  for (size_t m = 0; m < kMostMeasures; ++m) {
    for (size_t b = 0; b < kBinades; ++b) KeepLarger(binades[m][b], other.binades[m][b]);
  }
  falls.Add(other.falls);
  differs.Add(other.differs);
}

ChunkTrier::ChunkTrier(const Subject& subject, std::span<const TargetKernels* const> targets)
    : subject_(subject),
      targets_(targets.begin(), targets.end()),
      records_(targets.size()),
      outcomes_(3) {}

Count ChunkTrier::CountFalls(const float* x, const Outcome& outcome) const {
  const float from = subject_.rises_from();
  const float* y = outcome.y.data();
  // From x[i] to x[i + 1], which lie on the same side of 0; left of it bits rise as floats fall.
  const auto falls = [&](size_t i) {
    const float sign = std::copysign(1.0f, x[i]);
    return static_cast<uint32_t>(x[i] * x[i + 1] >= 0) & static_cast<uint32_t>(x[i] >= from) &
           static_cast<uint32_t>(x[i + 1] >= from) &
           static_cast<uint32_t>(y[i + 1] * sign < y[i] * sign);
  };
  uint32_t times = 0;
  for (size_t i = 0; i + 1 < count_; ++i) times += falls(i);
  if (times == 0) return {};
  size_t first = 0;
  while (falls(first) == 0) ++first;
  return {times, std::bit_cast<uint32_t>(x[first])};
}

void ChunkTrier::Judge(const float* x, bool ordered, Outcome& outcome) const {
  outcome.y = y_;
  const bool special = HasSpecial(x, count_);
  for (size_t m = 0; m < subject_.measures().size(); ++m) {
    float* errors = outcome.errors[m].data();
    subject_.FastErrors(m, x, y_.data(), exact_.data(), count_, errors);
    for (size_t i = 0; special && i < count_; ++i) {
      if (std::isfinite(x[i])) continue;
      errors[i] = static_cast<float>(subject_.Error(m, x[i], y_[i]));
    }
    outcome.largest[m] = LargestMagnitude(errors, count_);
  }
  outcome.falls = ordered ? CountFalls(x, outcome) : Count{};
}

Count ChunkTrier::CountDifferences(const float* x, const Floats& y, const Floats& want) const {
  Count count;
  for (size_t i = 0; i < count_; ++i) {
    // Which NaN is not promised.
    if (std::isnan(y[i]) && std::isnan(want[i])) continue;
    if (std::bit_cast<uint32_t>(y[i]) == std::bit_cast<uint32_t>(want[i])) continue;
    count.Add({1, std::bit_cast<uint32_t>(x[i])});
  }
  return count;
}

void ChunkTrier::Keep(const float* x, const Outcome& outcome, TargetRecord& record) const {
  for (size_t m = 0; m < subject_.measures().size(); ++m) {
    auto& binades = record.binades[m];
    // Bits rise in a chunk; it lies within few binades, unless steps are long.
    int32_t known = binades[BinadeOf(x[0])].error_bits;
    for (size_t b = BinadeOf(x[0]) + 1; b <= BinadeOf(x[count_ - 1]); ++b) {
      known = std::min(known, binades[b].error_bits);
    }
    if (outcome.largest[m] <= known) continue;
    for (size_t i = 0; i < count_; ++i) {
      const int32_t error = MagnitudeBits(outcome.errors[m][i]);
      Record& best = binades[BinadeOf(x[i])];
      if (error > best.error_bits) best = {error, std::bit_cast<uint32_t>(x[i]), outcome.y[i]};
    }
  }
  record.falls.Add(outcome.falls);
}

void ChunkTrier::Try(const float* x, size_t count, bool ordered) {
  count_ = count;
  subject_.FastExact(x, exact_.data(), count);
  bool judged[2] = {false, false};
  for (size_t t = 0; t < targets_.size(); ++t) {
    subject_.Run(*targets_[t], x, y_.data(), count);
    const size_t kind = targets_[t]->fma ? 0 : 1;
    Outcome* outcome = &outcomes_[kind];
    if (!judged[kind]) {
      Judge(x, ordered, *outcome);
      judged[kind] = true;
    } else if (std::memcmp(y_.data(), outcome->y.data(), count * sizeof(float)) != 0) {
      if (targets_[t]->fma) records_[t].differs.Add(CountDifferences(x, y_, outcome->y));
      outcome = &outcomes_[2];
      Judge(x, ordered, *outcome);
    }
    Keep(x, *outcome, records_[t]);
  }
}

}  // namespace encore::tool
