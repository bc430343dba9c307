// SPDX-License-Identifier: Apache-2.0
//
// MaxSim of encore/max_sim.h. A query's rows are packed like weights, a document's rows are
// multiplied by them some at a time, and each column's maximum is updated while the products are in
// L1.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "encore/max_sim.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/guarded.h"
#include "engine/base/input_check.h"
#include "engine/base/int_math.h"
#include "engine/base/prefetch.h"
#include "engine/ops/document_rows.h"
#include "engine/ops/gemm.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/packed_matrix.h"
#include "engine/ops/view_check.h"
#include "engine/ops/weight_source.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

// Packed queries at a time: a part of L2 and L3 that documents, which stream past, leave alone.
constexpr size_t kPackedBytes = size_t{4} << 20;
// Rows of a document that pass over one query: 12 of 128 floats are 6 KiB, which stay in L1 beside
// the query's panels (16 KiB for 32 rows). A multiple of the tile heights 4, 6 and 12.
constexpr size_t kRows = 12;
// Documents stream from memory, and a tile's rows are too short for hardware prefetchers: the rows
// of the pass after next are prefetched.
constexpr size_t kRowsAhead = 2 * kRows;

Status CheckRowStarts(const std::string& name, std::span<const size_t> starts, size_t rows) {
  ENCORE_RETURN_IF_ERROR(CheckStarts(name + ".row_starts", starts));
  return CheckEnd(name + ".row_starts", starts, rows, "the rows of " + name);
}

Status CheckQueries(const RowGroups& queries) {
  ENCORE_RETURN_IF_ERROR(CheckRank("queries.vectors", queries.vectors, 2));
  return CheckRowStarts("queries", queries.row_starts, queries.vectors.dim(0));
}

// Of checked queries, and documents of this shape.
Status CheckScores(const RowGroups& queries, const Shape& documents, size_t num_documents,
                   MutableView scores) {
  const size_t width = queries.vectors.dim(1);
  if (documents[1] != width) {
    return InvalidArgument("documents.vectors has shape " + documents.ToString() + "; wanted " +
                           std::to_string(width) + " columns, as queries.vectors");
  }
  ENCORE_RETURN_IF_ERROR(CheckShape("scores", scores,
                                    Shape(queries.row_starts.size() - 1, num_documents),
                                    "queries by documents"));
  ENCORE_RETURN_IF_ERROR(CheckOutput("scores", scores));
  return CheckNoOverlap("scores", scores, "queries.vectors", queries.vectors);
}

// As sentence-transformers has it, the mean included.
float EmptyScore(size_t query_rows, bool mean) {
  return mean ? kEmptyDocumentScore / static_cast<float>(std::max<size_t>(query_rows, 1))
              : kEmptyDocumentScore;
}

// For one thread: rows of A, the products of a panel, and each column's maximum so far.
struct MaxScratch {
  PackedLhs rows;   // [kRows]
  float* products;  // [kRows, kMaxTileVectors * lanes]
  float* maxima;    // [rows of the longest query, in whole vectors]
};

// The memory of a call's threads.
class ScratchOfThreads {
 public:
  [[nodiscard]] bool Allocate(const GemmKernel& kernel, const DocumentRows& documents,
                              size_t longest_query, size_t threads) {
    const bool makes = documents.type != DType::kF32;
    product_bytes_ = kRows * kMaxTileVectors * kernel.lanes * sizeof(float);
    size_t all = 0;
    if (!CheckedRoundUp(longest_query, 64, &maxima_bytes_) ||
        !CheckedMul(maxima_bytes_, sizeof(float), &maxima_bytes_) ||
        !CheckedRoundUp(makes ? documents.made_bytes(kernel) : 0, 64, &row_bytes_) ||
        !CheckedMul(row_bytes_, kRows, &all) ||
        !CheckedAdd(all, product_bytes_ + kQuantBytes, &all) ||
        !CheckedAdd(all, maxima_bytes_, &bytes_) || !CheckedMul(bytes_, threads, &all)) {
      return false;
    }
    return memory_.Allocate(all);
  }
  MaxScratch Of(int thread) {
    std::byte* const own = memory_.data() + static_cast<size_t>(thread) * bytes_;
    std::byte* const quant = own + maxima_bytes_ + product_bytes_;
    return {{quant + kQuantBytes, row_bytes_, reinterpret_cast<RowQuant*>(quant)},
            reinterpret_cast<float*>(own + maxima_bytes_),
            reinterpret_cast<float*>(own)};
  }

 private:
  static constexpr size_t kQuantBytes = RoundUp(kRows * sizeof(RowQuant), 64);
  size_t maxima_bytes_ = 0;
  size_t product_bytes_ = 0;
  size_t row_bytes_ = 0;
  size_t bytes_ = 0;  // of a thread
  AlignedBuffer<std::byte> memory_;
};

// No more than some pages, however wide rows are.
void Prefetch(const std::byte* data, size_t bytes) {
  constexpr size_t kMost = size_t{4} << 12;
  for (size_t i = 0; i < std::min(bytes, kMost); i += 64) PrefetchL1(data + i);
}

// maxima[c] = the largest of column c and what it was.
void RaiseMaxima(const float* products, size_t rows, size_t cols, float* maxima) {
  for (size_t r = 0; r < rows; ++r) {
    const float* row = products + r * cols;
    for (size_t c = 0; c < cols; ++c) maxima[c] = row[c] > maxima[c] ? row[c] : maxima[c];
  }
}

// The score of a query and rows [first, first + rows) of all documents, of which there are some.
float ScoreOf(const PackedView& query, const DocumentRows& documents, size_t first, size_t rows,
              bool mean, const MaxScratch& scratch) {
  const GemmKernel& kernel = *query.kernel;
  std::fill_n(scratch.maxima, RoundUp(query.n, kernel.lanes),
              -std::numeric_limits<float>::infinity());
  for (size_t begin = 0; begin < rows; begin += kRows) {
    const size_t count = std::min(kRows, rows - begin);
    Prefetch(documents.data + (first + begin + kRowsAhead) * documents.stride,
             count * documents.stride);
    const InputRows a = documents.Make(kernel, first + begin, count, scratch.rows);
    for (size_t p = 0; p < query.panels(); ++p) {
      const size_t nv = query.panel_nv(p);
      const size_t cols = nv * kernel.lanes;
      GemmTile tile = PlainTile();
      tile.in.a = a;
      tile.in.b = query.panel(p);
      tile.in.ldb = cols;
      tile.in.kc = query.groups();
      if (kernel.integer) {
        const size_t column = query.padded_column(p, 0);
        tile.quant.columns = {query.column_quant.scale + column, query.column_quant.sum + column};
        tile.quant.bias = kZeroRow;
      }
      tile.out.ldc = tile.out.cols = cols;
      for (size_t j = 0; j < nv; ++j) tile.out.c[j] = scratch.products + j * kernel.lanes;
      kernel.run[nv](tile, count);
      RaiseMaxima(scratch.products, count, cols, scratch.maxima + p * query.nr());
    }
  }
  double sum = 0;
  for (size_t i = 0; i < query.n; ++i) sum += scratch.maxima[i];
  if (mean && query.n > 0) sum /= static_cast<double>(query.n);
  return static_cast<float>(sum);
}

// Queries from `first` on, packed: up to kPackedBytes of them, or one.
Result<std::vector<PackedMatrix>> PackQueries(const RowGroups& queries, size_t first,
                                              const GemmKernel& kernel) {
  std::vector<PackedMatrix> packed;
  size_t bytes = 0;
  for (size_t q = first; q + 1 < queries.row_starts.size() && bytes < kPackedBytes; ++q) {
    const size_t begin = queries.row_starts[q];
    const ConstView& x = queries.vectors;
    const Shape shape(queries.row_starts[q + 1] - begin, x.dim(1));
    if (shape[0] == 0) {
      packed.emplace_back();
      continue;
    }
    Result<PackedMatrix> one = PackedMatrix::Create(
        WeightSource::One(ConstView(&x(begin, 0), shape, x.strides())), kernel);
    if (!one.ok() && one.status().code() != ErrorCode::kInvalidArgument) return one.status();
    if (!one.ok()) {
      return InvalidArgument("query " + std::to_string(q) +
                             " has NaN or an infinity; wanted finite numbers beside documents of "
                             "I8");
    }
    bytes += one->data_bytes();
    packed.push_back(*std::move(one));
  }
  return packed;
}

// What was given has been checked.
Status Score(const RowGroups& queries, const DocumentRows& documents,
             std::span<const size_t> document_starts, MutableView scores,
             const MaxSimOptions& options) {
  const size_t num_queries = queries.row_starts.size() - 1;
  const size_t num_documents = document_starts.size() - 1;
  if (num_queries == 0 || num_documents == 0) return {};
  size_t longest = 0;
  for (size_t q = 0; q < num_queries; ++q) {
    longest = std::max(longest, queries.row_starts[q + 1] - queries.row_starts[q]);
  }
  const GemmKernel& kernel = documents.kernel();
  ScratchOfThreads scratch;
  if (!scratch.Allocate(kernel, documents, longest,
                        static_cast<size_t>(options.executor.threads()))) {
    return NoMemoryFor("the maxima of a query of " + std::to_string(longest) + " rows");
  }
  for (size_t first = 0; first < num_queries;) {
    ENCORE_ASSIGN_OR_RETURN(const std::vector<PackedMatrix> packed,
                            PackQueries(queries, first, kernel));
    ENCORE_RETURN_IF_ERROR(RunTeam(options.executor, [&](Team& team) {
      team.ForEach(num_documents, [&](size_t d, int thread) {
        const MaxScratch own = scratch.Of(thread);
        const size_t row = document_starts[d];
        const size_t count = document_starts[d + 1] - row;
        for (size_t i = 0; i < packed.size(); ++i) {
          const PackedView& query = packed[i].view();
          float& score = scores(first + i, d);
          if (count == 0) {
            score = EmptyScore(query.n, options.mean);
          } else {
            score = query.n == 0 ? 0 : ScoreOf(query, documents, row, count, options.mean, own);
          }
        }
      });
    }));
    first += packed.size();
  }
  return {};
}

Status ScorePlain(const RowGroups& queries, const RowGroups& documents, MutableView scores,
                  const MaxSimOptions& options) {
  ENCORE_RETURN_IF_ERROR(CheckQueries(queries));
  ENCORE_RETURN_IF_ERROR(CheckRank("documents.vectors", documents.vectors, 2));
  ENCORE_RETURN_IF_ERROR(
      CheckRowStarts("documents", documents.row_starts, documents.vectors.dim(0)));
  ENCORE_RETURN_IF_ERROR(
      CheckScores(queries, documents.vectors.shape(), documents.row_starts.size() - 1, scores));
  ENCORE_RETURN_IF_ERROR(CheckNoOverlap("scores", scores, "documents.vectors", documents.vectors));
  ConstView rows = documents.vectors;
  AlignedBuffer<float> copy;
  if (!HasPlainRows(rows)) {
    size_t floats = 0;
    if (!CheckedMul(rows.dim(0), rows.dim(1), &floats) || !copy.Allocate(floats)) {
      return NoMemoryFor("a copy of documents.vectors of shape " + rows.shape().ToString());
    }
    CopyMatrix(rows, MutableView(copy.data(), rows.shape()));
    rows = ConstView(copy.data(), rows.shape());
  }
  const DocumentRows all = {.type = DType::kF32,
                            .data = reinterpret_cast<const std::byte*>(rows.data()),
                            .stride = RowStride(rows) * sizeof(float),
                            .width = rows.dim(1),
                            .scales = nullptr};
  return Score(queries, all, documents.row_starts, scores, options);
}

Status CheckStored(const StoredRowGroups& documents) {
  const WeightView& vectors = documents.vectors;
  const DType type = vectors.dtype();
  if (type != DType::kBF16 && type != DType::kI8) {
    return InvalidArgument("documents.vectors are " + std::string(DTypeName(type)) +
                           "; wanted BF16 or I8");
  }
  // Of the type only the size of an element matters there.
  ENCORE_RETURN_IF_ERROR(CheckRank(
      "documents.vectors",
      TensorView<const std::byte>(static_cast<const std::byte*>(vectors.data()), vectors.shape()),
      2));
  const size_t rows = vectors.dim(0);
  const size_t width = vectors.dim(1);
  ENCORE_RETURN_IF_ERROR(CheckRowStarts("documents", documents.row_starts, rows));
  const bool dense = (width <= 1 || vectors.stride(1) == 1) &&
                     (rows <= 1 || vectors.stride(0) == static_cast<ptrdiff_t>(width));
  if (!dense) {
    return InvalidArgument("documents.vectors of shape " + vectors.shape().ToString() +
                           " has gaps between its elements; wanted one row below the other");
  }
  if (type != DType::kI8) {
    if (documents.scales.empty()) return {};
    return InvalidArgument("documents.scales are given; wanted none for BF16");
  }
  if (width > kMaxInt8K) {
    return InvalidArgument("documents.vectors has " + std::to_string(width) +
                           " columns; wanted at most " + std::to_string(kMaxInt8K) + " for I8");
  }
  const ConstView& scales = documents.scales;
  ENCORE_RETURN_IF_ERROR(CheckShape("documents.scales", scales, Shape(rows),
                                    "a scale for each row of documents.vectors"));
  for (size_t r = 0; r < rows; ++r) {
    if (std::isfinite(scales(r))) continue;
    return InvalidArgument("documents.scales[" + std::to_string(r) +
                           "] is not finite; wanted a finite number");
  }
  return {};
}

Status ScoreStored(const RowGroups& queries, const StoredRowGroups& documents, MutableView scores,
                   const MaxSimOptions& options) {
  ENCORE_RETURN_IF_ERROR(CheckQueries(queries));
  ENCORE_RETURN_IF_ERROR(CheckStored(documents));
  const WeightView& vectors = documents.vectors;
  ENCORE_RETURN_IF_ERROR(
      CheckScores(queries, vectors.shape(), documents.row_starts.size() - 1, scores));
  std::vector<float> scales(documents.scales.empty() ? 0 : documents.scales.dim(0));
  for (size_t r = 0; r < scales.size(); ++r) scales[r] = documents.scales(r);
  const DocumentRows all = {.type = vectors.dtype(),
                            .data = static_cast<const std::byte*>(vectors.data()),
                            .stride = vectors.dim(1) * DTypeSize(vectors.dtype()),
                            .width = vectors.dim(1),
                            .scales = scales.data()};
  return Score(queries, all, documents.row_starts, scores, options);
}

}  // namespace
}  // namespace internal

Status MaxSim(const RowGroups& queries, const RowGroups& documents, MutableView scores,
              const MaxSimOptions& options) {
  return internal::Guarded("late interaction", [&] {
    return internal::ScorePlain(queries, documents, scores, options);
  });
}

Status MaxSim(const RowGroups& queries, const StoredRowGroups& documents, MutableView scores,
              const MaxSimOptions& options) {
  return internal::Guarded("late interaction", [&] {
    return internal::ScoreStored(queries, documents, scores, options);
  });
}

}  // namespace encore
