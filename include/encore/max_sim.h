// SPDX-License-Identifier: Apache-2.0
//
// MaxSim: scores of late interaction between texts that have a vector for each token, of documents
// in f32, bf16 or int8. Views, errors, threads and bits are as in ops.h.
//
//   const auto stored = encore::StoreVectors(documents.vectors, encore::DType::kI8);
//   encore::MaxSim(queries, stored->groups(documents.row_starts), scores);

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

// The same of documents in fewer bytes, one row below the other without gaps: BF16, or I8, where
// element c of row r is scales(r) vectors(r, c).
struct StoredRowGroups {
  WeightView vectors;                  // [rows, width], BF16 or I8
  ConstView scales;                    // [rows], of I8; else empty
  std::span<const size_t> row_starts;  // [texts + 1]
};

// Owns such vectors.
struct StoredVectors {
  Tensor vectors;  // BF16 or I8 [rows, width]
  Tensor scales;   // F32 [rows], of I8

  StoredRowGroups groups(std::span<const size_t> row_starts) const& {
    return {WeightView(vectors.dtype(), vectors.data(), vectors.shape()), scales.View<float>(),
            row_starts};
  }
  StoredRowGroups groups(std::span<const size_t> row_starts) const&& = delete;
};

// Vectors [rows, width] as BF16, rounded to nearest, half of the bytes; or as I8, a quarter: each
// row's scale is its largest magnitude over 127, and its elements are divided by that and rounded,
// -127 .. 127 (a row whose scale is below 2^-100 becomes zeros). kInvalidArgument for other types,
// and of I8 for a row with NaN or an infinity.
ENCORE_API Result<StoredVectors> StoreVectors(ConstView vectors, DType type,
                                              const Executor& executor = {});

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

// The same of documents in BF16 or I8. Queries are rounded on the way as StoreVectors does, and
// products are those of an Encoder in that precision: bf16 by FMAs over pairs, int8 by exact sums
// of integers that are multiplied by both scales. For unit vectors of 128 columns and queries of 32
// rows a score loses at most 0.01 with bf16 and 0.03 with int8 (tests/ops/max_sim_stored_test.cc).
// kInvalidArgument for other types, I8 without a finite scale for each row or wider than 65793, and
// queries with NaN or an infinity beside I8.
ENCORE_API Status MaxSim(const RowGroups& queries, const StoredRowGroups& documents,
                         MutableView scores, const MaxSimOptions& options = {});

}  // namespace encore

#endif  // ENCORE_MAX_SIM_H_
