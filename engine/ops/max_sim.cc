// SPDX-License-Identifier: Apache-2.0
//
// MaxSim of encore/max_sim.h. A query's rows are packed like weights, a document's rows pass over
// them some dozens at a time, and each column's maximum is taken while the products are in L1.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "encore/max_sim.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/ops/gemm.h"
#include "engine/ops/overlap_check.h"
#include "engine/ops/packed_matrix.h"
#include "engine/ops/view_check.h"
#include "engine/platform/thread_team.h"

namespace encore::inline v0_1 {
namespace internal {
namespace {

// Packed queries at a time: a part of L2 and L3 that documents, which stream past, leave alone.
constexpr size_t kPackedBytes = size_t{4} << 20;
// Rows of a document that pass over one query: 12 of 128 floats are 6 KiB, which stay in L1 beside
// the query's panels (16 KiB for 32 rows). A multiple of the tile heights 6 and 12.
constexpr size_t kRows = 12;
// Documents stream from memory, and a tile's rows are too short for processors to see it: the rows
// of the pass after next are asked for while this one computes.
constexpr size_t kRowsAhead = 2 * kRows;

Status CheckStarts(const std::string& name, const RowGroups& groups) {
  ENCORE_RETURN_IF_ERROR(CheckRank((name + ".vectors").c_str(), groups.vectors, 2));
  const std::span<const size_t> starts = groups.row_starts;
  const std::string what = name + ".row_starts";
  if (starts.empty()) {
    return InvalidArgument(what + " is empty; wanted one entry a text, plus the end");
  }
  if (starts[0] != 0) {
    return InvalidArgument(what + "[0] is " + std::to_string(starts[0]) + "; wanted 0");
  }
  for (size_t i = 1; i < starts.size(); ++i) {
    if (starts[i] >= starts[i - 1]) continue;
    return InvalidArgument(what + "[" + std::to_string(i) + "] is " + std::to_string(starts[i]) +
                           "; wanted at least " + std::to_string(starts[i - 1]) +
                           ", the entry before it");
  }
  if (starts.back() != groups.vectors.dim(0)) {
    return InvalidArgument(what + " ends with " + std::to_string(starts.back()) + "; wanted " +
                           std::to_string(groups.vectors.dim(0)) + ", the rows of " + name);
  }
  return {};
}

// As sentence-transformers has it, the mean included.
float EmptyScore(size_t query_rows, bool mean) {
  return mean ? kEmptyDocumentScore / static_cast<float>(std::max<size_t>(query_rows, 1))
              : kEmptyDocumentScore;
}

// Some queries of a call, packed.
struct PackedQueries {
  size_t first;                   // of the call's queries
  std::vector<PackedView> views;  // of those from there on; n is the query's rows
};

// For one thread: the products of a panel, and each column's maximum so far.
struct MaxScratch {
  float* products;  // [kRows, kMaxTileVectors * lanes]
  float* maxima;    // [rows of the longest query, in whole vectors]
};

// Only a hint: any address will do. No more than some pages, however wide rows are.
void Prefetch(const float* data, size_t floats) {
  constexpr size_t kMost = 4096;
  const char* const bytes = reinterpret_cast<const char*>(data);
  for (size_t i = 0; i < std::min(floats, kMost) * sizeof(float); i += 64) {
    __builtin_prefetch(bytes + i);
  }
}

// maxima[c] = the largest of column c and what it was.
void RaiseMaxima(const float* products, size_t rows, size_t cols, float* maxima) {
  for (size_t r = 0; r < rows; ++r) {
    const float* row = products + r * cols;
    for (size_t c = 0; c < cols; ++c) maxima[c] = row[c] > maxima[c] ? row[c] : maxima[c];
  }
}

// The score of a query and a document's rows [0, rows), of which there are some.
float ScoreOf(const PackedView& query, ConstRows document, size_t rows, bool mean,
              const MaxScratch& scratch) {
  const GemmKernel& kernel = *query.kernel;
  std::fill_n(scratch.maxima, RoundUp(query.n, kernel.lanes),
              -std::numeric_limits<float>::infinity());
  for (size_t begin = 0; begin < rows; begin += kRows) {
    const size_t count = std::min(kRows, rows - begin);
    Prefetch(document.row(begin + kRowsAhead), count * document.ld);
    for (size_t p = 0; p < query.panels(); ++p) {
      const size_t nv = query.panel_nv(p);
      const size_t cols = nv * kernel.lanes;
      GemmTile tile = PlainTile();
      tile.in.a = InputRows::Of(document.From(begin));
      tile.in.b = query.panel(p);
      tile.in.ldb = cols;
      tile.in.kc = query.groups();
      tile.out.ldc = tile.out.cols = cols;
      for (size_t j = 0; j < nv; ++j) tile.out.c[j] = scratch.products + j * kernel.lanes;
      RunTiles(kernel, nv, count, tile);
      RaiseMaxima(scratch.products, count, cols, scratch.maxima + p * query.nr());
    }
  }
  double sum = 0;
  for (size_t i = 0; i < query.n; ++i) sum += scratch.maxima[i];
  if (mean && query.n > 0) sum /= static_cast<double>(query.n);
  return static_cast<float>(sum);
}

// Where each query of [first, ...) goes, up to kPackedBytes of them; how many bytes that are. False
// if they overflow.
bool PlanQueries(const RowGroups& queries, size_t first, PackedQueries* packed, size_t* bytes) {
  const GemmKernel& kernel = GetGemmKernelF32();
  const size_t width = queries.vectors.dim(1);
  packed->first = first;
  packed->views.clear();
  *bytes = 0;
  for (size_t q = first; q + 1 < queries.row_starts.size(); ++q) {
    const size_t rows = queries.row_starts[q + 1] - queries.row_starts[q];
    const PackedView view{.kernel = &kernel,
                          .k = width,
                          .n = rows,
                          .nv = ChoosePanelVectors(kernel, std::max<size_t>(rows, 1)),
                          .panel_rows = width};
    size_t columns = 0;
    size_t size = 0;
    if (!CheckedRoundUp(rows, kernel.lanes, &columns) ||
        !CheckedMul(columns, view.column_bytes(), &size) || !CheckedRoundUp(size, 64, &size) ||
        !CheckedAdd(*bytes, size, &size)) {
      return false;
    }
    if (q > first && size > kPackedBytes) return true;
    packed->views.push_back(view);
    *bytes = size;
  }
  return true;
}

Status Score(const RowGroups& queries, const RowGroups& documents, MutableView scores,
             const MaxSimOptions& options) {
  ENCORE_RETURN_IF_ERROR(CheckStarts("queries", queries));
  ENCORE_RETURN_IF_ERROR(CheckStarts("documents", documents));
  const size_t width = queries.vectors.dim(1);
  if (documents.vectors.dim(1) != width) {
    return InvalidArgument("documents.vectors has shape " + documents.vectors.shape().ToString() +
                           "; wanted " + std::to_string(width) + " columns, as queries.vectors");
  }
  const size_t num_queries = queries.row_starts.size() - 1;
  const size_t num_documents = documents.row_starts.size() - 1;
  ENCORE_RETURN_IF_ERROR(
      CheckShape("scores", scores, Shape(num_queries, num_documents), "queries by documents"));
  ENCORE_RETURN_IF_ERROR(CheckOutput("scores", scores));
  ENCORE_RETURN_IF_ERROR(CheckNoOverlap("scores", scores, "queries.vectors", queries.vectors));
  ENCORE_RETURN_IF_ERROR(CheckNoOverlap("scores", scores, "documents.vectors", documents.vectors));
  if (num_queries == 0 || num_documents == 0) return {};

  ConstView rows = documents.vectors;
  AlignedBuffer<float> copy;
  if (!HasPlainRows(rows)) {
    size_t floats = 0;
    if (!CheckedMul(rows.dim(0), width, &floats) || !copy.Allocate(floats)) {
      return NoMemoryFor("a copy of documents.vectors of shape " + rows.shape().ToString());
    }
    CopyMatrix(rows, MutableView(copy.data(), rows.shape()));
    rows = ConstView(copy.data(), rows.shape());
  }
  const ConstRows all{rows.data(), RowStride(rows)};

  size_t longest = 0;
  for (size_t q = 0; q < num_queries; ++q) {
    longest = std::max(longest, queries.row_starts[q + 1] - queries.row_starts[q]);
  }
  const GemmKernel& kernel = GetGemmKernelF32();
  const size_t product_floats = kRows * kMaxTileVectors * kernel.lanes;
  const size_t threads = static_cast<size_t>(options.executor.threads());
  size_t thread_floats = 0;
  size_t scratch_floats = 0;
  AlignedBuffer<float> scratch;
  if (!CheckedRoundUp(longest, 64, &thread_floats) ||
      !CheckedAdd(thread_floats, product_floats, &thread_floats) ||
      !CheckedMul(thread_floats, threads, &scratch_floats) || !scratch.Allocate(scratch_floats)) {
    return NoMemoryFor("the maxima of a query of " + std::to_string(longest) + " rows");
  }
  PackedQueries packed{};
  for (size_t first = 0; first < num_queries; first += packed.views.size()) {
    size_t bytes = 0;
    AlignedBuffer<std::byte> memory;
    if (!PlanQueries(queries, first, &packed, &bytes) || !memory.Allocate(bytes)) {
      return NoMemoryFor("packed queries from the " + std::to_string(first + 1) + ". on");
    }
    std::byte* at = memory.data();
    for (size_t i = 0; i < packed.views.size(); ++i) {
      PackedView& view = packed.views[i];
      const ConstView& x = queries.vectors;
      if (view.n > 0) {
        PackInto(view, &x(queries.row_starts[first + i], 0), x.stride(1), x.stride(0), at);
      }
      view.data = at;
      at += RoundUp(view.packed_bytes(), 64);
    }
    RunTeam(options.executor, [&](Team& team) {
      team.ForEach(num_documents, [&](size_t d, int thread) {
        float* const own = scratch.data() + static_cast<size_t>(thread) * thread_floats;
        const size_t row = documents.row_starts[d];
        const size_t count = documents.row_starts[d + 1] - row;
        for (size_t i = 0; i < packed.views.size(); ++i) {
          const PackedView& query = packed.views[i];
          scores(packed.first + i, d) =
              count == 0
                  ? EmptyScore(query.n, options.mean)
                  : ScoreOf(query, all.From(row), count, options.mean, {own, own + product_floats});
        }
      });
    });
  }
  return {};
}

}  // namespace
}  // namespace internal

Status MaxSim(const RowGroups& queries, const RowGroups& documents, MutableView scores,
              const MaxSimOptions& options) {
  return internal::Guarded("late interaction",
                           [&] { return internal::Score(queries, documents, scores, options); });
}

}  // namespace encore
