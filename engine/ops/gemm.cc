// SPDX-License-Identifier: Apache-2.0
//
// The loops of the matrix product, from blocks of rows and panels down to microtiles.

#include "engine/ops/gemm.h"

#include <algorithm>

#include "engine/base/int_math.h"

namespace encore::internal {
namespace {

// From one tile to the one mr rows below it.
inline void AdvanceRows(GemmTile& tile, size_t nv, size_t mr) {
  tile.a += mr * tile.lda;
  tile.init += mr * tile.ld_init;
  if (tile.init_scale != nullptr) tile.init_scale += mr;
  if (tile.scale != nullptr) tile.scale += mr;
  if (tile.residual != nullptr) tile.residual += mr * tile.ld_residual;
  for (size_t j = 0; j < nv; ++j) tile.c[j] += mr * tile.ldc;
}

// What the tiles of one slice of one panel share beside what is in GemmTile.
struct SliceRun {
  const GemmKernel& kernel;
  size_t nv;
  const EvenSplit& rows;               // in tiles
  ActivationKernels::Tile activation;  // or null
  const char* next;                    // what to fetch meanwhile
};

// One slice of one panel. `tile` comes with the pointers of row 0 and goes with others. By
// reference: a copy would wait for each of its fields to be stored.
void RunSlice(const SliceRun& run, GemmTile& tile) {
  const EvenSplit& split = run.rows;
  // What comes next in memory, the next slice or panel, is fetched while these tiles compute, as
  // evenly as they can: a burst would hold up the loads that the tiles wait for. One or two tiles
  // ask for all lines of a row of the panel at each k, of more the first ones for a line each.
  const size_t bytes_each_k = run.nv * run.kernel.lanes * sizeof(float);
  const size_t lines_each_k = std::max<size_t>(1, bytes_each_k / 64);
  const bool few = split.parts < lines_each_k;
  tile.prefetch = run.next;
  tile.prefetch_step = std::min<size_t>(64, bytes_each_k);
  if (few) tile.prefetch_step = split.parts == 1 ? bytes_each_k : bytes_each_k / split.parts;
  for (size_t i = 0; i < split.parts; ++i) {
    const size_t mr = split.begin(i + 1) - split.begin(i);
    TilePrefetch lines = few ? kAllLines : kOneLine;
    if (!few && i >= lines_each_k) lines = kNoLine;
    run.kernel.tile[lines][run.nv][mr](tile);
    // While the tile is in L1.
    if (run.activation != nullptr) run.activation(tile.c[0], tile.ldc, mr, tile.cols);
    AdvanceRows(tile, run.nv, mr);
    tile.prefetch += tile.prefetch_step * tile.kc;
  }
}

// Where the vectors of columns from `col` on begin in row 0 of c.
void SetColumns(const ColumnGroups& groups, float* c, size_t col, size_t nv, size_t lanes,
                GemmTile* tile) {
  if (groups.cols == 0) {
    for (size_t j = 0; j < nv; ++j) tile->c[j] = c + col + j * lanes;
    return;
  }
  size_t group = col / groups.cols;
  size_t within = col - group * groups.cols;
  for (size_t j = 0; j < nv; ++j) {
    tile->c[j] = c + group * groups.stride + within;
    within += lanes;
    if (within == groups.cols) {
      within = 0;
      ++group;
    }
  }
}

// A slice of K for some rows and one panel: k0 .. k0 + kc - 1.
struct Slice {
  size_t row_begin;
  size_t row_end;
  size_t panel;
  size_t k0;
  size_t kc;
  bool last;       // of the panel
  float* partial;  // where sums rest between slices: row 0 is row_begin, column 0 the panel's
  size_t ld_partial;
  const float* next;  // what will be read after it
};

// `split`: of the rows, in tiles of the panel's width.
void RunPanelSlice(const GemmArgs& args, const Slice& slice, const EvenSplit& split) {
  const PackedView& b = args.b;
  const size_t nv = b.panel_nv(slice.panel);
  const size_t lanes = b.kernel->lanes;
  const size_t col = slice.panel * b.nr();
  const size_t row = slice.row_begin;
  SliceRun run{*b.kernel, nv, split, nullptr, reinterpret_cast<const char*>(slice.next)};
  // Field by field: with few rows, clearing all of it first would take a percent of the time.
  GemmTile tile;
  tile.init_scale = nullptr;
  tile.scale = nullptr;
  tile.residual = nullptr;
  tile.ld_residual = 0;
  tile.relu = false;
  tile.a = args.a + row * args.lda + slice.k0;
  tile.lda = args.lda;
  tile.ldb = b.panel_ld(slice.panel);
  tile.b = b.panel(slice.panel) + slice.k0 * tile.ldb;
  tile.kc = slice.kc;
  if (slice.k0 != 0) {
    tile.init = slice.partial;
    tile.ld_init = slice.ld_partial;
  } else {
    tile.init = b.bias != nullptr ? b.bias + col : kZeroRow;
    tile.ld_init = 0;
  }
  if (slice.last) {
    tile.ldc = args.ldc;
    tile.cols = b.panel_cols(slice.panel);
    SetColumns(args.groups, args.c + row * args.ldc, col, nv, lanes, &tile);
    if (args.residual != nullptr) {
      tile.residual = args.residual + row * args.ld_residual + col;
      tile.ld_residual = args.ld_residual;
    }
    tile.relu = args.relu;
    run.activation = args.activation;
  } else {
    for (size_t j = 0; j < nv; ++j) tile.c[j] = slice.partial + j * lanes;
    tile.ldc = slice.ld_partial;
    tile.cols = nv * lanes;
  }
  RunSlice(run, tile);
}

// Rows [row_begin, row_end), at most kMaxMc of them, panel by panel: while a panel's slices follow
// each other its sums rest in a strip. `after` is what will be read after the last panel; null for
// what lies behind it.
void RunPanels(const GemmArgs& args, size_t kc, size_t row_begin, size_t row_end,
               size_t panel_begin, size_t panel_end, const float* after) {
  const PackedView& b = args.b;
  alignas(64) float strip[kMaxMc * GemmKernel::kMaxNr];
  const size_t rows = row_end - row_begin;
  const EvenSplit split{rows, DivCeil(rows, b.kernel->max_mr[b.nv])};
  for (size_t p = panel_begin; p < panel_end; ++p) {
    const size_t ld = b.panel_ld(p);
    const size_t nv = b.panel_nv(p);
    Slice slice{row_begin, row_end, p, 0, 0, false, strip, nv * b.kernel->lanes, nullptr};
    do {
      slice.kc = std::min(kc, b.k - slice.k0);
      const size_t end = slice.k0 + slice.kc;
      slice.last = end == b.k;
      slice.next = b.panel(p) + (slice.last ? b.panel_rows : end) * ld;
      if (slice.last && p + 1 == panel_end && after != nullptr) slice.next = after;
      if (nv == b.nv) {
        RunPanelSlice(args, slice, split);
      } else {  // the last panel may be narrower, with taller tiles
        RunPanelSlice(args, slice, {rows, DivCeil(rows, b.kernel->max_mr[nv])});
      }
      slice.k0 = end;
    } while (!slice.last);
  }
}

}  // namespace

void RunTiles(const GemmKernel& kernel, size_t nv, size_t rows, GemmTile& tile) {
  const EvenSplit split{rows, DivCeil(rows, kernel.max_mr[nv])};
  for (size_t i = 0; i < split.parts; ++i) {
    const size_t mr = split.begin(i + 1) - split.begin(i);
    kernel.tile[kNoLine][nv][mr](tile);
    AdvanceRows(tile, nv, mr);
  }
}

void GemmBlock(const GemmArgs& args, const GemmBlocking& blocking, size_t row_begin, size_t row_end,
               size_t panel_begin, size_t panel_end) {
  if (row_begin == row_end || panel_begin == panel_end) return;
  const EvenSplit blocks{row_end - row_begin, DivCeil(row_end - row_begin, blocking.mc)};
  for (size_t i = 0; i < blocks.parts; ++i) {
    // After the last panel the next block of rows begins anew.
    const float* after = i + 1 < blocks.parts ? args.b.panel(panel_begin) : args.next;
    RunPanels(args, blocking.kc, row_begin + blocks.begin(i), row_begin + blocks.begin(i + 1),
              panel_begin, panel_end, after);
  }
}

void Gemm(Team& team, const GemmArgs& args, const GemmBlocking& blocking, size_t m) {
  const TileGrid grid =
      ChooseTileGrid(m, args.b.panels(), blocking.mc, static_cast<size_t>(team.lanes()));
  team.ForEach(grid.tasks(), [&](size_t task, int /*lane*/) {
    const size_t row = task / grid.panels.parts;
    const size_t col = task % grid.panels.parts;
    GemmBlock(args, blocking, grid.rows.begin(row), grid.rows.begin(row + 1),
              grid.panels.begin(col), grid.panels.begin(col + 1));
  });
}

}  // namespace encore::internal
