// SPDX-License-Identifier: Apache-2.0
//
// Which row of a table of relative embeddings a distance has (RelativeConfig of encore/layer.h).
// Unused rows are left out, the others are in the order of j - i, so that a run of distances has a
// run of rows.

#ifndef ENCORE_ENGINE_NN_RELATIVE_ROWS_H_
#define ENCORE_ENGINE_NN_RELATIVE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "encore/layer.h"

namespace encore::inline v0_1::internal {

class RelativeRows {
 public:
  explicit RelativeRows(const RelativeConfig& config);

  // Whether `config` has the same rows.
  bool AreOf(const RelativeConfig& config) const {
    return config.buckets == buckets_ && config.max_distance == max_distance_;
  }
  // The rows of the whole table that some distance has, in the order of growing j - i.
  const std::vector<size_t>& used() const { return used_; }
  // Fills the indices into used() of distances j - i = -longest .. longest; that of 0 at `at_zero`.
  void Fill(size_t longest, int32_t* at_zero) const;

 private:
  size_t buckets_;
  size_t max_distance_;
  std::vector<size_t> used_;
  // The distances |j - i| at which another row begins, growing: of keys before the query, and
  // behind it.
  std::vector<size_t> before_;
  std::vector<size_t> behind_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_NN_RELATIVE_ROWS_H_
