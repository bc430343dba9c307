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
  ActivationKernels::Gated gated;      // or null
  const float* gate;                   // for gated: row 0, rows of ld_gate
  size_t ld_gate;
  const char* next;  // what to fetch meanwhile
};

// One slice of one panel. `tile` comes with the pointers of row 0 and goes with others. By
// reference: a copy would wait for each of its fields to be stored.
void RunSlice(const SliceRun& run, GemmTile& tile) {
  const float* gate = run.gate;
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
    if (run.gated != nullptr) {
      run.gated(gate, run.ld_gate, tile.c[0], tile.ldc, mr, tile.cols);
      gate += mr * run.ld_gate;
    }
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

// A panel's product for some rows: where it comes from and goes.
struct PanelRun {
  size_t row_begin;
  size_t row_end;
  size_t panel;
  size_t half;     // of a pair; else 0
  size_t kc;       // of a slice
  EvenSplit rows;  // in tiles of the panel's width
  float* strip;    // where sums rest between slices: row 0 is row_begin, column 0 the panel's
  size_t ld_strip;
  bool rests;         // the sums stay in the strip
  const float* gate;  // of a pair's second half: what its first half left, in rows of ld_strip
  const float* next;  // what will be read after the panel
};

// A slice of K: k0 .. k0 + kc - 1.
void RunPanelSlice(const GemmArgs& args, const PanelRun& panel, size_t k0, size_t kc,
                   const float* next) {
  const PackedView& b = args.b;
  const size_t nv = b.panel_nv(panel.panel);
  const size_t lanes = b.kernel->lanes;
  const size_t row = panel.row_begin;
  SliceRun run{*b.kernel, nv,      panel.rows, nullptr,
               nullptr,   nullptr, 0,          reinterpret_cast<const char*>(next)};
  // Field by field: with few rows, clearing all of it first would take a percent of the time.
  GemmTile tile;
  tile.init_scale = nullptr;
  tile.scale = nullptr;
  tile.residual = nullptr;
  tile.ld_residual = 0;
  tile.relu = false;
  tile.a = args.a + row * args.lda + k0;
  tile.lda = args.lda;
  tile.ldb = b.panel_ld(panel.panel);
  tile.b = b.panel(panel.panel, panel.half) + k0 * tile.ldb;
  tile.kc = kc;
  if (k0 != 0) {
    tile.init = panel.strip;
    tile.ld_init = panel.ld_strip;
  } else {
    tile.init = b.bias != nullptr ? b.panel_bias(panel.panel, panel.half) : kZeroRow;
    tile.ld_init = 0;
  }
  if (k0 + kc == b.k && !panel.rests) {
    const size_t col = panel.panel * b.nr();
    tile.ldc = args.ldc;
    tile.cols = b.panel_cols(panel.panel);
    SetColumns(args.groups, args.c + row * args.ldc, col, nv, lanes, &tile);
    if (args.residual != nullptr) {
      tile.residual = args.residual + row * args.ld_residual + col;
      tile.ld_residual = args.ld_residual;
    }
    tile.relu = args.relu;
    run.activation = args.activation;
    if (panel.gate != nullptr) {
      run.gated = args.gated;
      run.gate = panel.gate;
      run.ld_gate = panel.ld_strip;
    }
  } else {
    for (size_t j = 0; j < nv; ++j) tile.c[j] = panel.strip + j * lanes;
    tile.ldc = panel.ld_strip;
    tile.cols = nv * lanes;
  }
  RunSlice(run, tile);
}

// Slice by slice.
void RunPanel(const GemmArgs& args, const PanelRun& panel) {
  const PackedView& b = args.b;
  const float* data = b.panel(panel.panel, panel.half);
  const size_t ld = b.panel_ld(panel.panel);
  size_t k0 = 0;
  do {
    const size_t kc = std::min(panel.kc, b.k - k0);
    const size_t end = k0 + kc;
    RunPanelSlice(args, panel, k0, kc, end == b.k ? panel.next : data + end * ld);
    k0 = end;
  } while (k0 != b.k);
}

// Some rows, at most kMaxMc of them, and panels [begin, end). `after` is what will be read after
// the last panel; null for what lies behind it.
struct PanelRange {
  size_t kc;
  size_t row_begin;
  size_t row_end;
  size_t begin;
  size_t end;
  const float* after;

  // Panel p, without a place for its sums.
  PanelRun Run(const PackedView& b, const EvenSplit& rows, size_t p, size_t half) const {
    PanelRun run{row_begin, row_end, p, half, kc, rows, nullptr, 0, false, nullptr, nullptr};
    const size_t nv = b.panel_nv(p);
    if (nv != b.nv) {  // the last panel may be narrower, with taller tiles
      run.rows = {row_end - row_begin, DivCeil(row_end - row_begin, b.kernel->max_mr[nv])};
    }
    run.ld_strip = nv * b.kernel->lanes;
    const bool last = p + 1 == end && half + 1 == b.halves();
    run.next = last && after != nullptr ? after : b.panel(p, half) + b.panel_rows * run.ld_strip;
    return run;
  }
};

void RunPanels(const GemmArgs& args, const PanelRange& range, const EvenSplit& rows) {
  alignas(64) float strip[kMaxMc * GemmKernel::kMaxNr];
  for (size_t p = range.begin; p < range.end; ++p) {
    PanelRun panel = range.Run(args.b, rows, p, 0);
    panel.strip = strip;
    RunPanel(args, panel);
  }
}

// The gate's product waits in a strip for the other one.
void RunPairs(const GemmArgs& args, const PanelRange& range, const EvenSplit& rows) {
  alignas(64) float gate[kMaxMc * GemmKernel::kMaxNr];
  alignas(64) float strip[kMaxMc * GemmKernel::kMaxNr];
  for (size_t p = range.begin; p < range.end; ++p) {
    PanelRun panel = range.Run(args.b, rows, p, 0);
    panel.strip = gate;
    panel.rests = true;
    RunPanel(args, panel);
    panel = range.Run(args.b, rows, p, 1);
    panel.strip = strip;
    panel.gate = gate;
    RunPanel(args, panel);
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
    const PanelRange range{blocking.kc,
                           row_begin + blocks.begin(i),
                           row_begin + blocks.begin(i + 1),
                           panel_begin,
                           panel_end,
                           after};
    const size_t rows = range.row_end - range.row_begin;
    const EvenSplit tiles{rows, DivCeil(rows, args.b.kernel->max_mr[args.b.nv])};
    if (args.b.gated) {
      RunPairs(args, range, tiles);
    } else {
      RunPanels(args, range, tiles);
    }
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
