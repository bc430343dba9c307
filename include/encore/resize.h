// SPDX-License-Identifier: Apache-2.0
//
// Resizes pictures as the Image.resize of Pillow 13 does (without reducing_gap), to the bit, on one
// thread:
//
//   std::vector<uint8_t> out(224 * 224 * 3);
//   encore::ResizeImage(picture, encore::ResizeFilter::kBicubic, {.height = 224, .width = 224,
//                       .rows = 224, .columns = 224}, out.data(), 224 * 3);

#ifndef ENCORE_RESIZE_H_
#define ENCORE_RESIZE_H_

#include <cstddef>
#include <cstdint>

#include "encore/export.h"
#include "encore/image_view.h"
#include "encore/status.h"

namespace encore::inline v0_1 {

// With Pillow's numbers.
enum class ResizeFilter : uint8_t {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5
};

// Of a picture resized to height x width, the part that is wanted. Nothing else is computed.
struct ResizeWindow {
  size_t height = 0, width = 0;  // 1 .. 2^30
  size_t top = 0, left = 0;
  size_t rows = 0, columns = 0;  // at least 1
};

// kInvalidArgument unless the view is as image_view.h has it.
ENCORE_API Status CheckImageView(const ImageView& image);

// Writes the window as RGB [rows, columns, 3], with out_stride bytes from a row to the next; `out`
// and the picture may not overlap. Memory besides: some rows, twice as many as a row of the result
// is computed from, and the weights of both directions.
//
// Formula, for each direction with scale = size / resized size, one after the other with 8 bits
// between them:
//   out[x] = clip((2^21 + sum_i w_i in[i]) >> 22),
//   w_i = round(2^22 f((i + 0.5 - (x + 0.5) scale) / max(scale, 1)) / sum of these f)
// over the source pixels within the filter's support; kNearest takes one source pixel. A direction
// whose size stays is left as it is. The horizontal one is first, unless more rows are lost than
// twice the columns (Pillow before 13: always).
//
// kInvalidArgument for a view, a window or a stride that does not fit; kOutOfMemory.
ENCORE_API Status ResizeImage(const ImageView& image, ResizeFilter filter,
                              const ResizeWindow& window, uint8_t* out, size_t out_stride);

}  // namespace encore

#endif  // ENCORE_RESIZE_H_
