// SPDX-License-Identifier: Apache-2.0
//
// The loops of the matrix product, from blocks of rows and panels down to microtiles.

#include "engine/ops/gemm.h"

#include <algorithm>

#include "engine/base/int_math.h"

namespace encore::internal {
namespace {

constexpr float kZeros[GemmKernel::kMaxNr] = {};

// One slice of one panel for `rows` rows, in tiles of equal height (13 rows are 7 +
// 6, not 8 + 5). `tile` comes with the pointers of row 0; its strides advance them.
void RunTiles(const GemmKernel& kernel, size_t nv, GemmTile tile, size_t rows) {
  const EvenSplit split{rows, DivCeil(rows, kernel.max_mr[nv])};
  // What comes next in memory, the next slice or panel, is fetched evenly while these tiles
  // compute: a burst would hold up the loads that the tiles wait for. Two lines a k are the most
  // that a tile asks for.
  const size_t bytes_each_k = nv * kernel.lanes * sizeof(float);
  tile.prefetch = reinterpret_cast<const char*>(tile.b) + tile.kc * bytes_each_k;
  tile.prefetch_step = std::min<size_t>(128, bytes_each_k / split.parts);
  for (size_t i = 0; i < split.parts; ++i) {
    const size_t mr = split.begin(i + 1) - split.begin(i);
    kernel.tile[nv][mr](tile);
    tile.a += mr * tile.lda;
    tile.init += mr * tile.ld_init;
    if (tile.residual != nullptr) tile.residual += mr * tile.ld_residual;
    tile.c += mr * tile.ldc;
    tile.prefetch += tile.prefetch_step * tile.kc;
  }
}

// One panel for rows [row_begin, row_end), at most kMaxMc of them.
void RunPanel(const GemmArgs& args, size_t kc, size_t row_begin, size_t row_end, size_t p) {
  const PackedView& b = args.b;
  const size_t nr = b.nr();
  const size_t nv = b.panel_nv(p);
  const size_t panel_nr = nv * b.kernel->lanes;  // the last panel may be narrower
  const size_t col = p * nr;
  const size_t cols = b.panel_cols(p);
  const size_t rows = row_end - row_begin;
  const size_t slices = std::max<size_t>(1, DivCeil(b.k, kc));

  // Between slices the partial sums rest here, and the chain of each element goes on from there.
  alignas(64) float strip[kMaxMc * GemmKernel::kMaxNr];

  for (size_t s = 0; s < slices; ++s) {
    const bool first = s == 0;
    const bool last = s + 1 == slices;
    const size_t k0 = s * kc;
    GemmTile tile{};
    tile.a = args.a + row_begin * args.lda + k0;
    tile.lda = args.lda;
    tile.b = b.panel(p) + k0 * panel_nr;
    tile.kc = std::min(kc, b.k - k0);
    if (!first) {
      tile.init = strip;
      tile.ld_init = panel_nr;
    } else if (args.init != nullptr) {
      tile.init = args.init + row_begin * args.ld_init + col;
      tile.ld_init = args.ld_init;
    } else {
      tile.init = b.bias != nullptr ? b.bias + col : kZeros;
      tile.ld_init = 0;
    }
    if (last) {
      tile.c = args.c + row_begin * args.ldc + col;
      tile.ldc = args.ldc;
      tile.cols = cols;
      if (args.residual != nullptr) {
        tile.residual = args.residual + row_begin * args.ld_residual + col;
        tile.ld_residual = args.ld_residual;
      }
    } else {
      tile.c = strip;
      tile.ldc = panel_nr;
      tile.cols = panel_nr;
    }
    RunTiles(*b.kernel, nv, tile, rows);
  }
  if (args.activation != nullptr) {
    for (size_t row = row_begin; row < row_end; ++row) {
      float* c = args.c + row * args.ldc + col;
      args.activation(c, c, cols);
    }
  }
}

}  // namespace

void GemmBlock(const GemmArgs& args, const GemmBlocking& blocking, size_t row_begin, size_t row_end,
               size_t panel_begin, size_t panel_end) {
  if (row_begin == row_end) return;
  const EvenSplit blocks{row_end - row_begin, DivCeil(row_end - row_begin, blocking.mc)};
  for (size_t i = 0; i < blocks.parts; ++i) {
    for (size_t p = panel_begin; p < panel_end; ++p) {
      RunPanel(args, blocking.kc, row_begin + blocks.begin(i), row_begin + blocks.begin(i + 1), p);
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
