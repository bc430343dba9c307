// SPDX-License-Identifier: Apache-2.0
//
// Which layers share a table, the tables' offsets and contents.

#include "engine/nn/position_tables.h"

#include <algorithm>
#include <utility>

#include "engine/base/double_math.h"
#include "engine/base/int_math.h"
#include "engine/ops/weight_source.h"

namespace encore::inline v0_1::internal {
namespace {

// Positions of a task that fills a table.
constexpr size_t kPositionsOfTask = 64;

// The bucket of a distance, 0 .. num_buckets - 1, as in T5: exact for small distances, then
// logarithmic.
size_t BucketOf(const BucketConfig& buckets, ptrdiff_t distance) {
  const size_t half = buckets.num_buckets / 2;
  const size_t exact = half / 2;
  const size_t base = distance > 0 ? half : 0;
  const size_t away = static_cast<size_t>(distance < 0 ? -distance : distance);
  if (away < exact) return base + away;
  const double ratio = static_cast<double>(away) / static_cast<double>(exact);
  const double range = static_cast<double>(buckets.max_distance) / static_cast<double>(exact);
  // A whole number of steps may be computed an ulp too small.
  const double steps = PortableLog(ratio) / PortableLog(range) * static_cast<double>(half - exact);
  const size_t wide = exact + static_cast<size_t>(steps + 1e-9);
  return base + std::min(wide, half - 1);
}

}  // namespace

DistanceBias::DistanceBias(const AlibiConfig& alibi) : heads_(alibi.slopes.size()) {
  for (const double slope : alibi.slopes) slopes_.push_back(static_cast<float>(slope));
}

DistanceBias::DistanceBias(const BucketConfig& buckets, const WeightView& table)
    : heads_(table.dim(1)), reach_(buckets.max_distance) {
  const size_t width = 2 * reach_ + 1;
  std::vector<float> rows(table.dim(0) * heads_);
  ReadRows(WeightSource::One(table), 0, table.dim(0), 0, heads_, rows.data(), heads_);
  near_.resize(heads_ * width);
  for (size_t i = 0; i < width; ++i) {
    const size_t bucket =
        BucketOf(buckets, static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(reach_));
    for (size_t h = 0; h < heads_; ++h) near_[h * width + i] = rows[bucket * heads_ + h];
  }
}

void DistanceBias::Fill(size_t head, size_t longest, float* at_zero) const {
  const auto end = static_cast<ptrdiff_t>(longest);
  if (!slopes_.empty()) {
    for (ptrdiff_t d = -end; d <= end; ++d) {
      at_zero[d] = -slopes_[head] * static_cast<float>(d < 0 ? -d : d);
    }
    return;
  }
  const float* zero = near_.data() + head * (2 * reach_ + 1) + reach_;
  const auto reach = static_cast<ptrdiff_t>(reach_);
  for (ptrdiff_t d = -end; d <= end; ++d) at_zero[d] = zero[std::clamp(d, -reach, reach)];
}

void PositionTables::Add(const LayerConfig& config, const EncoderLayerWeights& weights,
                         PackedLayer* layer) {
  if (config.rotary) {
    const RotaryConfig& r = *config.rotary;
    const auto same = [&](const RotaryEntry& e) {
      return e.inverse_frequencies == r.inverse_frequencies && e.magnitude == r.magnitude &&
             e.grid == r.grid;
    };
    const auto found = std::find_if(rotary_.begin(), rotary_.end(), same);
    layer->rotary = static_cast<size_t>(found - rotary_.begin());
    if (found == rotary_.end()) {
      const size_t pairs = r.inverse_frequencies.size();
      const double* const frequencies = r.inverse_frequencies.data();
      rotary_.push_back({r.inverse_frequencies, r.magnitude, r.grid,
                         r.grid ? RotaryTable(*r.grid, frequencies, pairs, r.magnitude)
                                : RotaryTable(frequencies, pairs, r.magnitude),
                         rotary_pairs_});
      rotary_pairs_ += pairs;
    }
  }
  if (config.alibi || config.buckets) {
    DistanceBias bias = config.alibi ? DistanceBias(*config.alibi)
                                     : DistanceBias(*config.buckets, weights.position_bias);
    const auto found = std::find_if(biases_.begin(), biases_.end(),
                                    [&](const BiasEntry& e) { return e.bias == bias; });
    layer->distance_bias = static_cast<size_t>(found - biases_.begin());
    if (found == biases_.end()) {
      biases_.push_back({std::move(bias), bias_heads_});
      bias_heads_ += config.num_heads;
    }
  }
  if (config.relative) {
    const auto found =
        std::find_if(relative_.begin(), relative_.end(),
                     [&](const RelativeRows& rows) { return rows.AreOf(*config.relative); });
    layer->relative.table = static_cast<size_t>(found - relative_.begin());
    if (found == relative_.end()) relative_.emplace_back(*config.relative);
  }
}

void PositionTables::Fill(Team& team, size_t longest, float* memory) const {
  const size_t blocks = DivCeil(longest, kPositionsOfTask);
  const size_t rotary_tasks = rotary_.size() * blocks;
  const size_t bias_tasks = rotary_tasks + bias_heads_;
  team.ForEach(bias_tasks + relative_.size(), [&](size_t task, int /*thread*/) {
    if (task < rotary_tasks) {
      const size_t t = task / blocks;
      const size_t begin = task % blocks * kPositionsOfTask;
      const Rotary at = RotaryAt(t, longest, memory);
      const size_t end = std::min(begin + kPositionsOfTask, longest);
      rotary_[t].table.Fill(begin, end, at.cos + begin * at.pairs, at.sin + begin * at.pairs);
      return;
    }
    if (task >= bias_tasks) {
      const size_t t = task - bias_tasks;
      relative_[t].Fill(longest, RelativeAt(t, longest, memory));
      return;
    }
    size_t t = 0;
    while (task - rotary_tasks >= biases_[t].heads_before + biases_[t].bias.heads()) ++t;
    const size_t head = task - rotary_tasks - biases_[t].heads_before;
    biases_[t].bias.Fill(head, longest, BiasAt(t, head, longest, memory));
  });
}

PositionTables::Rotary PositionTables::RotaryAt(size_t table, size_t longest, float* memory) const {
  const RotaryEntry& entry = rotary_[table];
  const size_t pairs = entry.inverse_frequencies.size();
  float* const cos = memory + 2 * longest * entry.pairs_before;
  return {cos, cos + longest * pairs, pairs};
}

float* PositionTables::BiasAt(size_t table, size_t head, size_t longest, float* memory) const {
  // A head has distances -longest .. longest, and the margin.
  float* first = memory + 2 * longest * rotary_pairs_;
  return first + (biases_[table].heads_before + head) * (2 * longest + kBiasMargin) + longest;
}

int32_t* PositionTables::RelativeAt(size_t table, size_t longest, float* memory) const {
  static_assert(sizeof(int32_t) == sizeof(float));
  float* first = memory + 2 * longest * rotary_pairs_ + bias_heads_ * (2 * longest + kBiasMargin);
  return reinterpret_cast<int32_t*>(first + table * (2 * longest + kBiasMargin) + longest);
}

}  // namespace encore::internal
