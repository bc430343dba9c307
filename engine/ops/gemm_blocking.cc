// SPDX-License-Identifier: Apache-2.0
//
// The sizes that gemm_blocking.h speaks of, with the reasons for each.

#include "engine/ops/gemm_blocking.h"

#include <algorithm>

#include "engine/base/int_math.h"
#include "engine/platform/once.h"

namespace encore::inline v0_1::internal {

const CacheSizes& MachineCaches() {
  static constinit Once<CacheSizes> caches;
  return caches.Get(Caches);
}

GemmBlocking ChooseGemmBlocking(const CacheSizes& caches, size_t k, size_t nr, size_t group_bytes) {
  // A slice of a panel (kc * nr groups) is read again for every tile of rows, and a block of A (mc
  // * kc groups) again for every panel: both should stay in L2, with room for the next panel. An
  // unknown L2 counts as half a megabyte.
  const size_t l2_groups = (caches.l2 != 0 ? caches.l2 : size_t{512} << 10) / group_bytes;
  const size_t kc_max = std::clamp(RoundUp(l2_groups / 4 / nr, 64), size_t{256}, size_t{1024});
  const size_t slices = std::max<size_t>(1, DivCeil(k, kc_max));
  // All slices but the last are whole steps of every kernel (GemmKernel::RunFn).
  const size_t kc = slices == 1 ? std::max<size_t>(1, k) : RoundUp(DivCeil(k, slices), 16);
  const size_t mc = std::clamp(l2_groups / 2 / kc / 16 * 16, size_t{32}, kMaxMc);
  return {mc, kc};
}

size_t ChoosePanelVectors(const GemmKernel& kernel, size_t n) {
  const size_t vectors = std::max<size_t>(1, DivCeil(n, kernel.lanes));
  const size_t max_nv = kernel.max_nv();
  if (vectors <= max_nv && vectors <= kernel.best_nv) return vectors;
  // A narrow last panel among many does not show, and the best width streams weights from memory
  // best (M = 16, N = 4096: 94 against 86 % of the peak at four vectors).
  if (vectors >= 16 * kernel.best_nv) return kernel.best_nv;
  // In order of liking: no remainder at the best width, or at another that still feeds both FMA
  // pipes (2 or more); then the best width unless its last panel would be a single vector, whose
  // tile must load as often as it multiplies.
  if (vectors % kernel.best_nv == 0) return kernel.best_nv;
  for (size_t nv = max_nv; nv >= 2; --nv) {
    if (vectors % nv == 0) return nv;
  }
  for (size_t nv = max_nv; nv >= 2; --nv) {
    if (vectors % nv >= 2) return nv;
  }
  return kernel.best_nv;
}

size_t ChooseAlignedPanelVectors(const GemmKernel& kernel, size_t multiple) {
  for (size_t nv = kernel.max_nv(); nv > 1; --nv) {
    if (multiple % (nv * kernel.lanes) == 0) return nv;
  }
  return 1;
}

TileGrid ChooseTileGrid(size_t m, size_t panels, size_t mc, size_t threads) {
  size_t row_parts = std::max<size_t>(1, DivCeil(m, mc));
  if (threads > 1) {
    // Rows first, if each thread gets at least 64 of them: no panel is then read by two threads at
    // a time.
    const size_t rounded = RoundUp(row_parts, threads);
    if (m / rounded >= 64 || (row_parts > 1 && m / rounded >= 32)) row_parts = rounded;
  }
  const size_t missing = DivCeil(threads, row_parts);
  const size_t panel_parts =
      std::clamp<size_t>(row_parts % threads == 0 ? 1 : missing, 1, std::max<size_t>(1, panels));
  return {{m, row_parts}, {panels, panel_parts}};
}

}  // namespace encore::internal
