// SPDX-License-Identifier: Apache-2.0
//
// Tables of positions: sines and cosines of rotary layers, biases by the distance of query and key
// (ALiBi, buckets), rows of relative embeddings by distance. Layers with equal positions share a
// table. A pass fills them for its longest sequence; memory is linear in it.

#ifndef ENCORE_ENGINE_NN_POSITION_TABLES_H_
#define ENCORE_ENGINE_NN_POSITION_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "encore/encoder.h"
#include "engine/nn/packed_layer.h"
#include "engine/nn/relative_rows.h"
#include "engine/ops/rotary_table.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1::internal {

// The bias of query i and key j in each head, a function of j - i.
class DistanceBias {
 public:
  explicit DistanceBias(const AlibiConfig& alibi);
  // table [num_buckets, heads].
  DistanceBias(const BucketConfig& buckets, const WeightView& table);

  size_t heads() const { return heads_; }
  // Fills the biases of distances -longest .. longest; `at_zero` is where that of 0 goes.
  void Fill(size_t head, size_t longest, float* at_zero) const;
  bool operator==(const DistanceBias&) const = default;

 private:
  size_t heads_;
  std::vector<float> slopes_;  // [heads]; ALiBi
  // Without ALiBi, [heads, 2 reach_ + 1]: the biases of distances -reach_ .. reach_. Further keys
  // have the bias of the last distance on their side.
  std::vector<float> near_;
  size_t reach_ = 0;
};

// Describes the tables of positions; their contents are in the workspace of a pass. Immutable after
// the last Add.
class PositionTables {
 public:
  // Finds or makes the tables of a layer, and notes them in it. `config` has its defaults filled
  // in.
  void Add(const LayerConfig& config, const EncoderLayerWeights& weights, PackedLayer* layer);

  bool empty() const { return rotary_.empty() && biases_.empty() && relative_.empty(); }
  // Floats for each position of the longest sequence, and beside these.
  size_t floats_per_position() const {
    return 2 * (rotary_pairs_ + bias_heads_ + relative_.size());
  }
  size_t floats_beside() const { return kBiasMargin * (bias_heads_ + relative_.size()); }

  // Fills all of them at `memory`, which has room for longest * floats_per_position() +
  // floats_beside() floats; the team's threads share the work.
  void Fill(Team& team, size_t longest, float* memory) const;

  // A filled table: cosines and sines [longest, pairs].
  struct Rotary {
    float* cos;
    float* sin;
    size_t pairs;
  };
  Rotary RotaryAt(size_t table, size_t longest, float* memory) const;
  // Where the bias of distance 0 is.
  float* BiasAt(size_t table, size_t head, size_t longest, float* memory) const;
  // For AttentionHead.
  const RelativeRows& relative(size_t table) const { return relative_[table]; }
  // Where the row of distance 0 is.
  int32_t* RelativeAt(size_t table, size_t longest, float* memory) const;

 private:
  struct RotaryEntry {
    std::vector<double> inverse_frequencies;
    double magnitude;
    std::optional<RotaryGrid> grid;
    RotaryTable table;
    size_t pairs_before;
  };
  struct BiasEntry {
    DistanceBias bias;
    size_t heads_before;
  };
  // Floats that keep the heads of biases apart by some lines.
  static constexpr size_t kBiasMargin = 32;

  std::vector<RotaryEntry> rotary_;
  std::vector<BiasEntry> biases_;
  std::vector<RelativeRows> relative_;
  size_t rotary_pairs_ = 0;  // of all entries
  size_t bias_heads_ = 0;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_POSITION_TABLES_H_
