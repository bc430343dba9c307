// SPDX-License-Identifier: Apache-2.0
//
// Positions of patches for a picture of another size than the model was trained with.

#ifndef ENCORE_ENGINE_MODELS_PATCH_POSITIONS_H_
#define ENCORE_ENGINE_MODELS_PATCH_POSITIONS_H_

#include <cstddef>
#include <vector>

namespace encore::inline v0_1::internal {

struct PatchGrid {
  size_t rows = 0, columns = 0;
};

// out [to.rows to.columns, width] from table [from.rows from.columns, width], as torch's
// interpolate(mode="bicubic", align_corners=False) of each column (Keys 1981,
// doi:10.1109/TASSP.1981.1163711): with the kernel's a = -0.75 on four points, of which those
// beyond the edge are the edge's. With `antialias` a = -0.5, the kernel is as much wider as the
// grid gets smaller, and points beyond the edge are left out. In double, rounded once.
void InterpolatePositions(const float* table, const PatchGrid& from, size_t width, bool antialias,
                          const PatchGrid& to, float* out);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_MODELS_PATCH_POSITIONS_H_
