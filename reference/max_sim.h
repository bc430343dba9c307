// SPDX-License-Identifier: Apache-2.0
//
// Defines MaxSim: in double precision, straight from the formula of encore/max_sim.h.

#ifndef ENCORE_REFERENCE_MAX_SIM_H_
#define ENCORE_REFERENCE_MAX_SIM_H_

#include <algorithm>
#include <cstddef>
#include <limits>

#include "encore/tensor.h"

namespace encore::reference {

// Of rows [begin, end) of queries and of documents; documents have at least one.
inline double MaxSim(ConstView queries, size_t query_begin, size_t query_end, ConstView documents,
                     size_t begin, size_t end) {
  double sum = 0;
  for (size_t x = query_begin; x < query_end; ++x) {
    double largest = -std::numeric_limits<double>::infinity();
    for (size_t y = begin; y < end; ++y) {
      double product = 0;
      for (size_t k = 0; k < queries.dim(1); ++k) {
        product += static_cast<double>(queries(x, k)) * documents(y, k);
      }
      largest = std::max(largest, product);
    }
    sum += largest;
  }
  return sum;
}

}  // namespace encore::reference

#endif  // ENCORE_REFERENCE_MAX_SIM_H_
