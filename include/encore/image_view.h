// SPDX-License-Identifier: Apache-2.0
//
// ImageView: a picture that the caller decoded, as encore's functions take it. encore itself
// decodes no files: `encore embed --images` and pyencore do, and libpng, libjpeg-turbo or stb_image
// give such pixels to your program.

#ifndef ENCORE_IMAGE_VIEW_H_
#define ENCORE_IMAGE_VIEW_H_

#include <cstddef>
#include <cstdint>

#include "encore/language.h"  // IWYU pragma: keep

namespace encore::inline v0_1 {

// A view of pixels [height, width, channels], 8 bits each, channels innermost, rows from the top.
// The memory stays the caller's and must outlive the call.
//
// What it does not have: an orientation (turn the picture as its EXIF data want before), a colour
// space (models want the bytes of sRGB as they are in the file) and 16-bit samples.
struct ImageView {
  const uint8_t* pixels = nullptr;
  size_t width = 0;   // columns, 1 .. 2^20
  size_t height = 0;  // rows, 1 .. 2^20; width * height is at most kMaxPixels
  size_t stride = 0;  // bytes from a row to the next, at least width * channels
  // 1: grey, which becomes three equal channels. 3: red, green, blue. 4: and alpha, not
  // premultiplied: the picture is laid on white, as transformers' convert_to_rgb does.
  size_t channels = 3;

  // 178 956 970, from which on Pillow takes a file for a decompression bomb.
  static constexpr size_t kMaxPixels = size_t{2} * 1024 * 1024 * 1024 / 12;
};

}  // namespace encore

#endif  // ENCORE_IMAGE_VIEW_H_
