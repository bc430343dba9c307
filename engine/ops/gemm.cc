// SPDX-License-Identifier: Apache-2.0
//
// The loops of the matrix product, from blocks of rows and panels down to slices of K.

#include "engine/ops/gemm.h"

#include <algorithm>

#include "engine/base/int_math.h"

namespace encore::inline v0_1::internal {
namespace {

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
        rows_(row_end - row_begin),
        kc_(kc),
        nr_(b_.nr()),
        bytes_(b_.panel_bytes(nr_)) {
    if (rows_ <= GemmKernel::kMaxWideMr) wide_ = kernel_.wide_panels[b_.nv][rows_];
  }

  // Panels [begin, end). `next` is read after them; null for what follows them in memory.
  void RunPanels(size_t begin, size_t end, const void* next) {
    alignas(64) Accumulator strip[kStripFloats];
    for (size_t p = begin; p < end; p += panels_) {
      FindPanels(p, end, 0, next);
      RunPanel(strip, nullptr, /*keep_in_strip=*/false);
    }
  }

  // The most rows of RunPairs for such a matrix, in slices of kc groups.
  static size_t RowsOfPairs(const PackedView& b, size_t kc) {
    return (b.groups() > kc ? kStripFloats / 2 : kStripFloats) / b.nr();
  }

  // Pairs of them: the gate's product stays in a strip until the other one is there, whose partial
  // sums are in the strip's second half.
  void RunPairs(size_t begin, size_t end, const void* next) {
    alignas(64) Accumulator gate[kStripFloats];
    Accumulator* const strip = gate + kStripFloats / 2;
    for (size_t p = begin; p < end; p += panels_) {
      FindPanels(p, end, 0, nullptr);
      RunPanel(gate, nullptr, /*keep_in_strip=*/true);
      FindPanels(p, end, 1, next);
      RunPanel(strip, gate, /*keep_in_strip=*/false);
    }
  }

 private:
  static constexpr size_t kStripFloats = kMaxMc * GemmKernel::kMaxNr;

  // Panel p and those beside it, or a half of each of these pairs.
  void FindPanels(size_t p, size_t end, size_t half, const void* next) {
    // Side by side go whole panels but for columns of the last vector.
    const bool fits = wide_ != 0 && p + wide_ <= end && (p + wide_) * nr_ < b_.n + kernel_.lanes;
    panels_ = fits ? wide_ : 1;
    col_ = p * nr_;
    cols_ = std::min(panels_ * nr_, b_.n - col_);
    nv_ = b_.nv;
    size_t bytes = bytes_;
    if (cols_ < nr_) {  // the last panel may have fewer vectors
      nv_ = DivCeil(cols_, kernel_.lanes);
      bytes = b_.panel_bytes(nv_ * kernel_.lanes);
    }
    panel_ = static_cast<const std::byte*>(b_.data) + p * bytes_ * b_.halves() + half * bytes;
    column_ = b_.padded_column(p, half);
    // Memory order: gate panel, up panel, next gate panel ...
    next_ = panel_ + bytes;
    if (half + 1 == b_.halves()) next_ += (panels_ - 1) * bytes_ * b_.halves();
    if (p + panels_ == end && next != nullptr) next_ = static_cast<const std::byte*>(next);
  }

  // strip: buffer for partial sums between slices of K, [rows, columns of the panel]. With
  // keep_in_strip the final sums stay there too. gate: the strip of a pair's first half.
  void RunPanel(Accumulator* strip, const float* gate, bool keep_in_strip) {
    size_t k0 = 0;
    do {
      const size_t kc = std::min(kc_, b_.groups() - k0);
      RunSlice(k0, kc, strip, gate, keep_in_strip);
      k0 += kc;
    } while (k0 != b_.groups());
  }

  // Groups [k0, k0 + kc).
  void RunSlice(size_t k0, size_t kc, Accumulator* strip, const float* gate, bool keep_in_strip) {
    const size_t nv = nv_ * panels_;
    const size_t lanes = kernel_.lanes;
    const size_t ld_strip = nv * lanes;
    const bool last = k0 + kc == b_.groups();
    const bool integer = kernel_.integer;
    const float* bias = b_.bias != nullptr ? b_.bias + column_ : nullptr;
    GemmTile slice = PlainTile();
    slice.in.ldb = nv_ * lanes;
    slice.in.panels = panels_;
    slice.in.panel_stride = bytes_ * b_.halves();
    const size_t group_bytes = slice.in.ldb * kernel_.group_bytes();
    slice.in.a = a_;
    slice.in.a.data += k0 * kernel_.kr * kernel_.a_bytes;
    slice.in.b = panel_ + k0 * group_bytes;
    slice.in.kc = kc;
    // The next slice or panel in memory is fetched while this one is computed.
    slice.in.prefetch =
        reinterpret_cast<const char*>(last ? next_ : panel_ + (k0 + kc) * group_bytes);
    if (k0 != 0) {
      slice.in.init = strip;
      slice.in.ld_init = ld_strip;
    } else if (bias != nullptr && !integer) {
      slice.in.init = bias;
    }
    if (integer && last) {
      slice.quant.columns = {b_.column_quant.scale + column_, b_.column_quant.sum + column_};
      slice.quant.bias = bias != nullptr ? bias : kZeroRow;
    }
    if (last && !keep_in_strip) {
      const Rows c = args_.c.From(row_);
      slice.out.ldc = c.ld;
      slice.out.cols = cols_;
      SetColumns(args_.blocks, c.data, col_, nv, lanes, &slice.out);
      if (args_.residual.data != nullptr) {
        slice.out.residual = {args_.residual.row(row_) + col_, args_.residual.ld};
      }
      slice.out.relu = args_.relu;
      slice.out.activation = args_.activation;
      if (gate != nullptr) {
        slice.out.gated = args_.gated;
        slice.out.gate = gate;
        slice.out.ld_gate = ld_strip;
      }
    } else {
      for (size_t j = 0; j < nv; ++j) slice.out.c[j] = strip + j * lanes;
      slice.out.ldc = ld_strip;
      slice.out.cols = ld_strip;
    }
    kernel_.run[nv_](slice, rows_);
  }

  const GemmArgs& args_;
  const PackedView& b_;
  const GemmKernel& kernel_;
  const InputRows a_;  // from the first row on
  const size_t row_;
  const size_t rows_;
  const size_t kc_;  // of a slice
  const size_t nr_;
  const size_t bytes_;  // of a panel
  size_t wide_ = 0;     // panels side by side for so few rows; 0: one
  // Of the panels at hand.
  size_t panels_;  // side by side
  size_t nv_;
  size_t col_;
  size_t cols_;
  size_t column_;  // in bias and column_quant
  const std::byte* panel_;
  const std::byte* next_;  // read after them
};

}  // namespace

void GemmBlock(const GemmArgs& args, const GemmBlocking& blocking, size_t row_begin, size_t row_end,
               size_t panel_begin, size_t panel_end) {
  if (row_begin == row_end || panel_begin == panel_end) return;
  const size_t mc = args.b.gated
                        ? std::min(blocking.mc, PanelWalk::RowsOfPairs(args.b, blocking.kc))
                        : blocking.mc;
  const EvenSplit blocks{row_end - row_begin, DivCeil(row_end - row_begin, mc)};
  for (size_t i = 0; i < blocks.parts; ++i) {
    // The next block of rows begins with the first panel.
    const void* next = i + 1 < blocks.parts ? args.b.panel(panel_begin) : args.next;
    PanelWalk walk(args, blocking.kc, row_begin + blocks.begin(i), row_begin + blocks.begin(i + 1));
    if (args.b.gated) {
      walk.RunPairs(panel_begin, panel_end, next);
    } else {
      walk.RunPanels(panel_begin, panel_end, next);
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
