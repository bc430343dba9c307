// SPDX-License-Identifier: Apache-2.0
//
// Resizes pictures as the Image.resize of Pillow 13 does (without reducing_gap), to the bit.

#ifndef ENCORE_ENGINE_IMAGES_RESAMPLE_H_
#define ENCORE_ENGINE_IMAGES_RESAMPLE_H_

#include <cstddef>
#include <cstdint>

#include "encore/image_view.h"

namespace encore::inline v0_1::internal {

// With Pillow's numbers.
enum class ResampleFilter : uint8_t {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5
};

// Of a picture resized to height x width, the part that is wanted.
struct ImageWindow {
  size_t height = 0, width = 0;  // at least 1
  size_t top = 0, left = 0;
  size_t rows = 0, columns = 0;
};

// Writes the window as RGB [rows, columns, 3], with out_stride bytes from a row to the next. The
// view is valid, as image_view.h has it. Memory: some rows, twice as many as a row of the result
// needs, and the weights of both directions. Throws std::bad_alloc.
//
// Formula, for each direction with scale = size / resized size, one after the other with 8 bits
// between them:
//   out[x] = clip((2^21 + sum_i w_i in[i]) >> 22),
//   w_i = round(2^22 f((i + 0.5 - (x + 0.5) scale) / max(scale, 1)) / sum of these f)
// over the source pixels within the filter's support; kNearest takes one source pixel. A direction
// whose size stays is left as it is. The horizontal one is first, unless more rows are lost than
// twice the columns (Pillow before 13: always).
void Resample(const ImageView& image, ResampleFilter filter, const ImageWindow& window,
              uint8_t* out, size_t out_stride);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IMAGES_RESAMPLE_H_
