// SPDX-License-Identifier: Apache-2.0
//
// MaxSim: scores of late interaction between texts that have a vector for each token. Views,
// errors, threads and bits are as in ops.h.

#ifndef ENCORE_MAX_SIM_H_
#define ENCORE_MAX_SIM_H_

#include <cstddef>
#include <span>

#include "encore/executor.h"
#include "encore/export.h"
#include "encore/status.h"
#include "encore/tensor.h"

namespace encore::inline v0_1 {

// The vectors of several texts, one text below the other: text t owns the rows from row_starts[t]
// up to, but not including, row_starts[t + 1]. row_starts[0] is 0, entries never decrease, the last
// one is the number of rows; a text may have none. Views of the caller's memory.
struct RowGroups {
  ConstView vectors;                   // [rows, width]
  std::span<const size_t> row_starts;  // [texts + 1]
};

struct MaxSimOptions {
  bool mean = false;  // each score is divided by the rows of its query
  Executor executor = {};
};

// The score of a document without a row, as in sentence-transformers: of the mean, divided too.
inline constexpr float kEmptyDocumentScore = -1e9f;

// scores(q, d) = sum over rows x of query q of the largest x . y among rows y of document d: the
// late interaction of Khattab & Zaharia 2020, arXiv:2004.12832. scores [queries, documents]. Dot
// products are as MatMul's elements; the sum goes from row to row in double and is rounded once,
// after the division by the query's rows where the mean is wanted. A query without rows gets 0,
// and with every query a document without rows kEmptyDocumentScore. A product that is NaN is
// skipped; a row of a query whose products are all NaN counts as -inf. Packs the queries into
// memory it allocates, 4 MiB or one query at a time, and reads documents where they are, unless
// their rows are not contiguous. A score's bits depend on its query and its document alone.
ENCORE_API Status MaxSim(const RowGroups& queries, const RowGroups& documents, MutableView scores,
                         const MaxSimOptions& options = {});

}  // namespace encore

#endif  // ENCORE_MAX_SIM_H_
