// SPDX-License-Identifier: Apache-2.0
//
// The loops of the matrix product, from blocks of rows and panels down to microtiles.

#include "engine/ops/gemm.h"

#include <algorithm>

#include "engine/base/int_math.h"

namespace encore::inline v0_1::internal {
namespace {

// From one tile to the one mr rows below it.
inline void AdvanceRows(GemmTile& tile, size_t nv, size_t mr) {
  tile.in.a = tile.in.a.From(mr);
  tile.in.init += mr * tile.in.ld_init;
  if (tile.in.init_scale != nullptr) tile.in.init_scale += mr;
  if (tile.out.scale != nullptr) tile.out.scale += mr;
  if (tile.out.residual.data != nullptr) tile.out.residual = tile.out.residual.From(mr);
  for (size_t j = 0; j < nv; ++j) tile.out.c[j] += mr * tile.out.ldc;
}

// Where the vectors of columns from `col` on begin in row 0 of c.
void SetColumns(const ColumnBlocks& blocks, float* c, size_t col, size_t nv, size_t lanes,
                TileEpilogue* out) {
  if (blocks.cols == 0) {
    for (size_t j = 0; j < nv; ++j) out->c[j] = c + col + j * lanes;
    return;
  }
  size_t block = col / blocks.cols;
  size_t within = col - block * blocks.cols;
  for (size_t j = 0; j < nv; ++j) {
    out->c[j] = c + block * blocks.stride + within;
    within += lanes;
    if (within == blocks.cols) {
      within = 0;
      ++block;
    }
  }
}

// The product of some rows, at most kMaxMc, and one panel after another. K is counted in groups.
class PanelWalk {
 public:
  PanelWalk(const GemmArgs& args, size_t kc, size_t row_begin, size_t row_end)
      : args_(args),
        b_(args.b),
        kernel_(*args.b.kernel),
        a_(args.a.From(row_begin)),
        row_(row_begin),
        kc_(kc),
        nr_(b_.nr()),
        bytes_(b_.panel_bytes(nr_)),
        whole_(row_end - row_begin, DivCeil(row_end - row_begin, kernel_.max_mr[b_.nv])) {
    if (whole_.count <= GemmKernel::kMaxWideMr) wide_ = kernel_.wide[b_.nv][whole_.count].panels;
  }

  // Panels [begin, end), then `after` will be read; null for what lies behind them.
  void RunPanels(size_t begin, size_t end, const void* after) {
    alignas(64) Accumulator strip[kStripFloats];
    for (size_t p = begin; p < end; p += panels_) {
      FindPanels(p, end, 0, after);
      RunPanel(strip, nullptr, /*rests=*/false);
    }
  }

  // Rows that RunPairs takes at most of such a matrix, in slices of kc groups.
  static size_t RowsOfPairs(const PackedView& b, size_t kc) {
    return (b.groups() > kc ? kStripFloats / 2 : kStripFloats) / b.nr();
  }

  // Pairs of them: the gate's product waits in a strip for the other one, whose sums rest in the
  // strip's second half where there are several slices.
  void RunPairs(size_t begin, size_t end, const void* after) {
    alignas(64) Accumulator gate[kStripFloats];
    Accumulator* const strip = gate + kStripFloats / 2;
    for (size_t p = begin; p < end; p += panels_) {
      FindPanels(p, end, 0, nullptr);
      RunPanel(gate, nullptr, /*rests=*/true);
      FindPanels(p, end, 1, after);
      RunPanel(strip, gate, /*rests=*/false);
    }
  }

 private:
  static constexpr size_t kStripFloats = kMaxMc * GemmKernel::kMaxNr;

  // Panel p and those beside it, or a half of each of these pairs.
  void FindPanels(size_t p, size_t end, size_t half, const void* after) {
    // Side by side go whole panels but for columns of the last vector.
    const bool fits = wide_ != 0 && p + wide_ <= end && (p + wide_) * nr_ < b_.n + kernel_.lanes;
    panels_ = fits ? wide_ : 1;
    col_ = p * nr_;
    cols_ = std::min(panels_ * nr_, b_.n - col_);
    nv_ = b_.nv;
    rows_ = &whole_;
    size_t bytes = bytes_;
    if (cols_ < nr_) {  // the last panel may have fewer vectors, with taller tiles
      nv_ = DivCeil(cols_, kernel_.lanes);
      narrow_ = {whole_.count, DivCeil(whole_.count, kernel_.max_mr[nv_])};
      rows_ = &narrow_;
      bytes = b_.panel_bytes(nv_ * kernel_.lanes);
    }
    panel_ = static_cast<const std::byte*>(b_.data) + p * bytes_ * b_.halves() + half * bytes;
    column_ = b_.padded_column(p, half);
    // Behind the first half lies the second, and behind that the next pair.
    next_ = panel_ + bytes;
    if (half + 1 == b_.halves()) next_ += (panels_ - 1) * bytes_ * b_.halves();
    if (p + panels_ == end && after != nullptr) next_ = static_cast<const std::byte*>(after);
  }

  // strip: where sums rest between slices, and in the end if it `rests`, [rows, columns of the
  // panel]; gate: of a pair's second half, the strip that its first half left.
  void RunPanel(Accumulator* strip, const float* gate, bool rests) {
    size_t k0 = 0;
    do {
      const size_t kc = std::min(kc_, b_.groups() - k0);
      RunSlice(k0, kc, strip, gate, rests);
      k0 += kc;
    } while (k0 != b_.groups());
  }

  // Groups [k0, k0 + kc).
  void RunSlice(size_t k0, size_t kc, Accumulator* strip, const float* gate, bool rests) {
    const size_t nv = nv_ * panels_;
    const size_t lanes = kernel_.lanes;
    const size_t ld_strip = nv * lanes;
    const bool last = k0 + kc == b_.groups();
    const bool ends = last && !rests;
    const bool integer = kernel_.integer;
    const float* bias = b_.bias != nullptr ? b_.bias + column_ : nullptr;
    GemmTile tile = PlainTile();
    tile.in.ldb = nv_ * lanes;
    const size_t group_bytes = tile.in.ldb * kernel_.group_bytes();
    tile.in.a = a_;
    tile.in.a.data += k0 * kernel_.kr * kernel_.a_bytes;
    tile.in.b = panel_ + k0 * group_bytes;
    tile.in.kc = kc;
    if (k0 != 0) {
      tile.in.init = strip;
      tile.in.ld_init = ld_strip;
    } else if (bias != nullptr && !integer) {
      tile.in.init = bias;
    }
    if (integer && last) {
      tile.quant.columns = {b_.column_quant.scale + column_, b_.column_quant.sum + column_};
      tile.quant.bias = bias != nullptr ? bias : kZeroRow;
    }
    if (ends) {
      const Rows c = args_.c.From(row_);
      tile.out.ldc = c.ld;
      tile.out.cols = cols_;
      SetColumns(args_.blocks, c.data, col_, nv, lanes, &tile.out);
      if (args_.residual.data != nullptr) {
        tile.out.residual = {args_.residual.row(row_) + col_, args_.residual.ld};
      }
      tile.out.relu = args_.relu;
    } else {
      for (size_t j = 0; j < nv; ++j) tile.out.c[j] = strip + j * lanes;
      tile.out.ldc = ld_strip;
      tile.out.cols = ld_strip;
    }
    // While the rows are in L1; only the last slice's.
    const auto finish = [&](size_t row, size_t rows) {
      if (!ends) return;
      if (args_.activation != nullptr) {
        args_.activation(tile.out.c[0], tile.out.ldc, rows, tile.out.cols);
      }
      if (gate != nullptr) {
        args_.gated(gate + row * ld_strip, ld_strip, tile.out.c[0], tile.out.ldc, rows,
                    tile.out.cols);
      }
    };
    // What comes next in memory, the next slice or panel, is fetched while these tiles compute.
    tile.in.prefetch =
        reinterpret_cast<const char*>(last ? next_ : panel_ + (k0 + kc) * group_bytes);
    tile.in.prefetch_step = group_bytes;
    if (panels_ != 1) {
      tile.in.panel_stride = bytes_ * b_.halves();
      kernel_.wide[nv_][rows_->count].run(tile);
      return finish(0, rows_->count);
    }
    if (kernel_.rows[nv] != nullptr && kernel_.TakesAtOnce(rows_->count, kc)) {
      kernel_.rows[nv](tile, rows_->count);
      return finish(0, rows_->count);
    }
    // Each tile fetches its share: a burst would hold up the loads that the tiles wait for. One or
    // two tiles ask for all lines of a row of the panel at each k, more of them for one line, and
    // the same one again until the next begins.
    const size_t parts = rows_->parts;
    const TilePrefetch lines = parts < std::max<size_t>(1, group_bytes / 64) ? kAllLines : kOneLine;
    tile.in.prefetch_step = DivCeil(group_bytes, parts);
    for (size_t i = 0; i < parts; ++i) {
      const size_t row = rows_->begin(i);
      const size_t mr = rows_->begin(i + 1) - row;
      kernel_.tile[lines][nv][mr](tile);
      finish(row, mr);
      AdvanceRows(tile, nv, mr);
      tile.in.prefetch += tile.in.prefetch_step * kc;
    }
  }

  const GemmArgs& args_;
  const PackedView& b_;
  const GemmKernel& kernel_;
  const InputRows a_;  // from the first row on
  const size_t row_;
  const size_t kc_;  // of a slice
  const size_t nr_;
  const size_t bytes_;     // of a panel
  const EvenSplit whole_;  // rows in tiles of the panels' width
  size_t wide_ = 0;        // panels of a wide tile; 0: none for so many rows
  // Of the panels at hand.
  size_t panels_;  // side by side, in one wide tile; or 1
  size_t nv_;
  size_t col_;
  size_t cols_;
  size_t column_;          // in bias and column_quant
  const EvenSplit* rows_;  // in tiles of their width
  EvenSplit narrow_;       // of the last panel's
  const std::byte* panel_;
  const std::byte* next_;  // what will be read after them
};

}  // namespace

void RunTiles(const GemmKernel& kernel, size_t nv, size_t rows, GemmTile& tile) {
  if (kernel.only_rows) {
    kernel.rows[nv](tile, rows);
    return;
  }
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
  const size_t mc = args.b.gated
                        ? std::min(blocking.mc, PanelWalk::RowsOfPairs(args.b, blocking.kc))
                        : blocking.mc;
  const EvenSplit blocks{row_end - row_begin, DivCeil(row_end - row_begin, mc)};
  for (size_t i = 0; i < blocks.parts; ++i) {
    // After the last panel the next block of rows begins anew.
    const void* after = i + 1 < blocks.parts ? args.b.panel(panel_begin) : args.next;
    PanelWalk walk(args, blocking.kc, row_begin + blocks.begin(i), row_begin + blocks.begin(i + 1));
    if (args.b.gated) {
      walk.RunPairs(panel_begin, panel_end, after);
    } else {
      walk.RunPanels(panel_begin, panel_end, after);
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
