// SPDX-License-Identifier: Apache-2.0
//
// The loops of the matrix product, from blocks of rows and panels down to microtiles.

#include "engine/ops/gemm.h"

#include <algorithm>

#include "engine/base/int_math.h"

namespace encore::inline v0_1::internal {
namespace {

// From one tile to the one mr rows below it; a_bytes: from row to row of A.
inline void AdvanceRows(GemmTile& tile, size_t a_bytes, size_t nv, size_t mr) {
  tile.a = static_cast<const std::byte*>(tile.a) + mr * a_bytes;
  tile.init += mr * tile.ld_init;
  if (tile.row_quant != nullptr) tile.row_quant += mr;
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
  size_t group_bytes;     // of the panel: from one group to the next
  const std::byte* next;  // what to fetch meanwhile
};

// One slice of one panel. `tile` comes with the pointers of row 0 and goes with others. By
// reference: a copy would wait for each of its fields to be stored.
void RunSlice(const SliceRun& run, GemmTile& tile) {
  const float* gate = run.gate;
  const EvenSplit& split = run.rows;
  const size_t a_bytes = tile.lda * run.kernel.a_bytes;
  // What comes next in memory, the next slice or panel, is fetched while these tiles compute, each
  // its share: a burst would hold up the loads that the tiles wait for. One or two tiles ask for
  // all lines of a row of the panel at each k, more of them for one line, and the same one again
  // until the next begins.
  const size_t bytes_each_k = run.group_bytes;
  const bool few = split.parts < std::max<size_t>(1, bytes_each_k / 64);
  const TilePrefetch lines = few ? kAllLines : kOneLine;
  tile.prefetch = reinterpret_cast<const char*>(run.next);
  tile.prefetch_step = DivCeil(bytes_each_k, split.parts);
  for (size_t i = 0; i < split.parts; ++i) {
    const size_t mr = split.begin(i + 1) - split.begin(i);
    run.kernel.tile[lines][run.nv][mr](tile);
    // While the tile is in L1.
    if (run.activation != nullptr) run.activation(tile.c[0], tile.ldc, mr, tile.cols);
    if (run.gated != nullptr) {
      run.gated(gate, run.ld_gate, tile.c[0], tile.ldc, mr, tile.cols);
      gate += mr * run.ld_gate;
    }
    AdvanceRows(tile, a_bytes, run.nv, mr);
    tile.prefetch += tile.prefetch_step * tile.kc;
  }
}

// The same where product(tile) computes all rows in one call: those of several panels side by side,
// or many.
template <typename Product>
void RunRowsAtOnce(const SliceRun& run, GemmTile& tile, const Product& product) {
  tile.prefetch = reinterpret_cast<const char*>(run.next);
  tile.prefetch_step = run.group_bytes;
  const size_t rows = run.rows.count;
  product(tile);
  if (run.activation != nullptr) run.activation(tile.c[0], tile.ldc, rows, tile.cols);
  if (run.gated != nullptr) {
    run.gated(run.gate, run.ld_gate, tile.c[0], tile.ldc, rows, tile.cols);
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

// A panel's product for some rows: where it comes from and goes. K is counted in groups.
struct PanelRun {
  const std::byte* a;  // of the first row
  const std::byte* b;
  size_t nv;
  size_t panels;  // side by side, in one wide tile; or 1
  size_t panel_stride;
  size_t k;
  size_t kc;               // of a slice
  const float* bias;       // or null
  const float* col_scale;  // these two of an integer kernel
  const float* col_sum;
  const EvenSplit* rows;  // in tiles of the panel's width
  Accumulator* strip;     // where sums rest between slices: [rows, columns of the panel]
  bool rests;             // and stay there in the end
  size_t row;             // the first one
  size_t col;
  size_t cols;
  const float* gate;      // of a pair's second half: the strip that its first half left
  const std::byte* next;  // what will be read after the panel
};

// Groups [k0, k0 + kc).
void RunPanelSlice(const GemmArgs& args, const PanelRun& panel, size_t k0, size_t kc) {
  const GemmKernel& kernel = *args.b.kernel;
  const size_t nv = panel.nv * panel.panels;
  const size_t lanes = kernel.lanes;
  const size_t end = k0 + kc;
  const size_t ld_strip = nv * lanes;
  // Field by field: with few rows, clearing all of it first would take a percent of the time.
  GemmTile tile;
  tile.row_quant = nullptr;
  tile.col_scale = nullptr;
  tile.init_scale = nullptr;
  tile.scale = nullptr;
  tile.residual = nullptr;
  tile.ld_residual = 0;
  tile.relu = false;
  tile.lda = args.lda;
  tile.ldb = panel.nv * lanes;
  const size_t group_bytes = tile.ldb * kernel.group_bytes();
  tile.a = panel.a + k0 * kernel.kr * kernel.a_bytes;
  tile.b = panel.b + k0 * group_bytes;
  tile.kc = kc;
  const std::byte* next = end == panel.k ? panel.next : panel.b + end * group_bytes;
  SliceRun run{kernel, nv, *panel.rows, nullptr, nullptr, nullptr, 0, group_bytes, next};
  if (k0 != 0) {
    tile.init = panel.strip;
    tile.ld_init = ld_strip;
  } else {
    tile.init = panel.bias != nullptr && !kernel.integer ? panel.bias : kZeroRow;
    tile.ld_init = 0;
  }
  if (kernel.integer && end == panel.k) {
    tile.row_quant = args.row_quant + panel.row;
    tile.col_scale = panel.col_scale;
    tile.col_sum = panel.col_sum;
    tile.bias = panel.bias != nullptr ? panel.bias : kZeroRow;
  }
  if (end == panel.k && !panel.rests) {
    tile.ldc = args.ldc;
    tile.cols = panel.cols;
    SetColumns(args.groups, args.c + panel.row * args.ldc, panel.col, nv, lanes, &tile);
    if (args.residual != nullptr) {
      tile.residual = args.residual + panel.row * args.ld_residual + panel.col;
      tile.ld_residual = args.ld_residual;
    }
    tile.relu = args.relu;
    run.activation = args.activation;
    if (panel.gate != nullptr) {
      run.gated = args.gated;
      run.gate = panel.gate;
      run.ld_gate = ld_strip;
    }
  } else {
    for (size_t j = 0; j < nv; ++j) tile.c[j] = panel.strip + j * lanes;
    tile.ldc = ld_strip;
    tile.cols = ld_strip;
  }
  if (panel.panels == 1) {
    const GemmKernel::RowsFn rows_of_panel = kernel.rows[nv];
    if (rows_of_panel != nullptr && kernel.TakesAtOnce(panel.rows->count, kc)) {
      RunRowsAtOnce(run, tile, [&](const GemmTile& t) { rows_of_panel(t, run.rows.count); });
    } else {
      RunSlice(run, tile);
    }
    return;
  }
  tile.panel_stride = panel.panel_stride;
  RunRowsAtOnce(run, tile, kernel.wide[panel.nv][panel.rows->count].run);
}

void RunPanel(const GemmArgs& args, const PanelRun& panel) {
  size_t k0 = 0;
  do {
    const size_t kc = std::min(panel.kc, panel.k - k0);
    RunPanelSlice(args, panel, k0, kc);
    k0 += kc;
  } while (k0 != panel.k);
}

// Some rows, at most kMaxMc of them, and panels [begin, end).
struct PanelRange {
  size_t kc;
  size_t row_begin;
  size_t row_end;
  size_t begin;
  size_t end;
  const void* after;  // what will be read after the last panel; null for what lies behind it
};

// Goes through the panels of a range.
class PanelWalk {
 public:
  PanelWalk(const GemmArgs& args, const PanelRange& range)
      : b_(args.b),
        range_(range),
        nr_(b_.nr()),
        bytes_(b_.panel_bytes(nr_)),
        rows_(range.row_end - range.row_begin,
              DivCeil(range.row_end - range.row_begin, b_.kernel->max_mr[b_.nv])) {
    const GemmKernel& kernel = *b_.kernel;
    run_.a = static_cast<const std::byte*>(args.a) + range.row_begin * args.lda * kernel.a_bytes;
    run_.k = b_.groups();
    run_.kc = range.kc;
    run_.panel_stride = bytes_ * b_.halves();
    if (rows_.count <= GemmKernel::kMaxWideMr) wide_ = kernel.wide[b_.nv][rows_.count].panels;
    run_.bias = nullptr;
    run_.col_scale = nullptr;
    run_.col_sum = nullptr;
    run_.rests = false;
    run_.row = range.row_begin;
    run_.gate = nullptr;
  }

  // How many panels from p on go side by side: whole ones but for columns of the last vector.
  size_t Beside(size_t p) const {
    const bool fits =
        wide_ != 0 && p + wide_ <= range_.end && (p + wide_) * nr_ < b_.n + b_.kernel->lanes;
    return fits ? wide_ : 1;
  }

  // Panel p and those beside it, or a half of each of these pairs; without a place for sums.
  PanelRun& At(size_t p, size_t panels, size_t half) {
    run_.panels = panels;
    run_.col = p * nr_;
    run_.cols = std::min(panels * nr_, b_.n - run_.col);
    run_.nv = b_.nv;
    run_.rows = &rows_;
    size_t bytes = bytes_;
    if (run_.cols < nr_) Narrow(&bytes);
    run_.b = static_cast<const std::byte*>(b_.data) + p * bytes_ * b_.halves() + half * bytes;
    const size_t column = b_.padded_column(p, half);
    if (b_.bias != nullptr) run_.bias = b_.bias + column;
    if (b_.column_quant.scale != nullptr) {
      run_.col_scale = b_.column_quant.scale + column;
      run_.col_sum = b_.column_quant.sum + column;
    }
    // Behind the first half lies the second, and behind that the next pair.
    run_.next = run_.b + bytes;
    if (half + 1 == b_.halves()) run_.next += (panels - 1) * run_.panel_stride;
    if (p + panels == range_.end && half + 1 == b_.halves() && range_.after != nullptr) {
      run_.next = static_cast<const std::byte*>(range_.after);
    }
    return run_;
  }

 private:
  // The last panel may have fewer vectors, with taller tiles.
  void Narrow(size_t* bytes) {
    run_.nv = DivCeil(run_.cols, b_.kernel->lanes);
    narrow_ = {rows_.count, DivCeil(rows_.count, b_.kernel->max_mr[run_.nv])};
    run_.rows = &narrow_;
    *bytes = b_.panel_bytes(run_.nv * b_.kernel->lanes);
  }

  const PackedView& b_;
  const PanelRange& range_;
  const size_t nr_;
  const size_t bytes_;    // of a panel
  const EvenSplit rows_;  // in tiles of the panels' width
  size_t wide_ = 0;       // panels of a wide tile; 0: none for so many rows
  EvenSplit narrow_;      // of the last one's
  PanelRun run_;
};

void RunPanels(const GemmArgs& args, const PanelRange& range) {
  alignas(64) Accumulator strip[kMaxMc * GemmKernel::kMaxNr];
  PanelWalk walk(args, range);
  for (size_t p = range.begin, panels; p < range.end; p += panels) {
    panels = walk.Beside(p);
    PanelRun& panel = walk.At(p, panels, 0);
    panel.strip = strip;
    RunPanel(args, panel);
  }
}

// The gate's product waits in a strip for the other one.
void RunPairs(const GemmArgs& args, const PanelRange& range) {
  alignas(64) float gate[kMaxMc * GemmKernel::kMaxNr];
  alignas(64) Accumulator strip[kMaxMc * GemmKernel::kMaxNr];
  PanelWalk walk(args, range);
  for (size_t p = range.begin, panels; p < range.end; p += panels) {
    panels = walk.Beside(p);
    PanelRun& first = walk.At(p, panels, 0);
    first.strip = gate;
    first.rests = true;
    first.gate = nullptr;
    RunPanel(args, first);
    PanelRun& second = walk.At(p, panels, 1);
    second.strip = strip;
    second.rests = false;
    second.gate = gate;
    RunPanel(args, second);
  }
}

}  // namespace

void RunTiles(const GemmKernel& kernel, size_t nv, size_t rows, GemmTile& tile) {
  if (kernel.only_rows) {
    kernel.rows[nv](tile, rows);
    return;
  }
  const EvenSplit split{rows, DivCeil(rows, kernel.max_mr[nv])};
  const size_t a_bytes = tile.lda * kernel.a_bytes;
  for (size_t i = 0; i < split.parts; ++i) {
    const size_t mr = split.begin(i + 1) - split.begin(i);
    kernel.tile[kNoLine][nv][mr](tile);
    AdvanceRows(tile, a_bytes, nv, mr);
  }
}

void GemmBlock(const GemmArgs& args, const GemmBlocking& blocking, size_t row_begin, size_t row_end,
               size_t panel_begin, size_t panel_end) {
  if (row_begin == row_end || panel_begin == panel_end) return;
  const EvenSplit blocks{row_end - row_begin, DivCeil(row_end - row_begin, blocking.mc)};
  for (size_t i = 0; i < blocks.parts; ++i) {
    // After the last panel the next block of rows begins anew.
    const void* after = i + 1 < blocks.parts ? args.b.panel(panel_begin) : args.next;
    const PanelRange range{blocking.kc,
                           row_begin + blocks.begin(i),
                           row_begin + blocks.begin(i + 1),
                           panel_begin,
                           panel_end,
                           after};
    if (args.b.gated) {
      RunPairs(args, range);
    } else {
      RunPanels(args, range);
    }
  }
}

void Gemm(Team& team, const GemmArgs& args, const GemmBlocking& blocking, size_t m) {
  const TileGrid grid =
      ChooseTileGrid(m, args.b.panels(), blocking.mc, static_cast<size_t>(team.threads()));
  team.ForEach(grid.tasks(), [&](size_t task, int /*thread*/) {
    const size_t row = task / grid.panels.parts;
    const size_t col = task % grid.panels.parts;
    GemmBlock(args, blocking, grid.rows.begin(row), grid.rows.begin(row + 1),
              grid.panels.begin(col), grid.panels.begin(col + 1));
  });
}

}  // namespace encore::internal
