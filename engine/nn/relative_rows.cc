// SPDX-License-Identifier: Apache-2.0
//
// Buckets, and the distances at which they begin.

#include "engine/nn/relative_rows.h"

#include <algorithm>
#include <cmath>

#include "engine/base/double_math.h"
#include "engine/nn/layer_sizes.h"

namespace encore::inline v0_1::internal {
namespace {

// More than any distance of two tokens.
constexpr size_t kFarthest = size_t{1} << 31;

// bucket(distance) of a distance of at least 0, up to `most`.
size_t BucketOf(const RelativeConfig& relative, size_t distance, size_t most) {
  const size_t mid = relative.buckets / 2;
  if (relative.buckets == 0 || distance <= mid) return std::min(distance, most);
  const double m = static_cast<double>(mid);
  const double ratio = PortableLog(static_cast<double>(distance) / m) /
                       PortableLog(static_cast<double>(relative.max_distance - 1) / m);
  // Less 1e-9: a whole number may be computed an ulp too large, and ceil would go one too far.
  const double steps = std::ceil(ratio * (m - 1) - 1e-9);
  return steps >= static_cast<double>(most) ? most
                                            : std::min(mid + static_cast<size_t>(steps), most);
}

// The distances from 1 on at which bucket(distance), up to `most`, grows.
std::vector<size_t> Beginnings(const RelativeConfig& relative, size_t most) {
  std::vector<size_t> found;
  size_t distance = 1;
  size_t bucket = 0;
  while (bucket < most) {
    // The first distance from here on that has another bucket.
    size_t end = kFarthest;
    if (BucketOf(relative, distance, most) == bucket) {
      while (distance < end) {
        const size_t middle = distance + (end - distance) / 2;
        if (BucketOf(relative, middle, most) == bucket) {
          distance = middle + 1;
        } else {
          end = middle;
        }
      }
    }
    if (distance == kFarthest) break;
    found.push_back(distance);
    bucket = BucketOf(relative, distance, most);
    ++distance;
  }
  return found;
}

}  // namespace

RelativeRows::RelativeRows(const RelativeConfig& config)
    : buckets_(config.buckets), max_distance_(config.max_distance) {
  const size_t span = RelativeSpan(config);
  // Keys before the query have the rows behind row `span`, the middle one: i - j is above 0.
  before_ = Beginnings(config, span - 1);
  behind_ = Beginnings(config, span);
  for (auto d = before_.rbegin(); d != before_.rend(); ++d) {
    used_.push_back(span + BucketOf(config, *d, span - 1));
  }
  used_.push_back(span);
  for (const size_t d : behind_) used_.push_back(span - BucketOf(config, d, span));
}

void RelativeRows::Fill(size_t longest, int32_t* at_zero) const {
  const auto fill = [&](const std::vector<size_t>& beginnings, ptrdiff_t side) {
    size_t step = 0;
    for (size_t d = 1; d <= longest; ++d) {
      while (step < beginnings.size() && beginnings[step] <= d) ++step;
      at_zero[side * static_cast<ptrdiff_t>(d)] =
          static_cast<int32_t>(before_.size()) +
          static_cast<int32_t>(side) * static_cast<int32_t>(step);
    }
  };
  at_zero[0] = static_cast<int32_t>(before_.size());
  fill(before_, -1);
  fill(behind_, 1);
}

}  // namespace encore::internal
