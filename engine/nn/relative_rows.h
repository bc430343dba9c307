// SPDX-License-Identifier: Apache-2.0
//
// Which row of a table of relative embeddings a distance has (RelativeConfig of encore/layer.h).
// Rows that no distance has are left out, and the others are in the order of j - i: so a run of
// distances has a run of rows, and no more rows than distances.

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

  // Whether these are the rows of another configuration too.
  bool AreOf(const RelativeConfig& config) const {
    return config.buckets == buckets_ && config.max_distance == max_distance_;
  }
  // Of the whole table, which rows some distance has, in the order of growing j - i.
  const std::vector<size_t>& used() const { return used_; }
  // Fills the places in used() of distances j - i = -longest .. longest; `at_zero` is where that of
  // 0 goes.
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
