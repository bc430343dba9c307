// SPDX-License-Identifier: Apache-2.0
//
// Pictures from files: PNG by libpng, JPEG by libjpeg-turbo, WebP by libwebp, each where encore was
// built with it.

#ifndef ENCORE_TOOLS_IMAGES_DECODE_IMAGE_H_
#define ENCORE_TOOLS_IMAGES_DECODE_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "encore/image_view.h"
#include "encore/status.h"

namespace encore::images {

struct DecodedImage {
  std::vector<uint8_t> pixels;  // [height, width, channels]
  size_t height = 0, width = 0;
  size_t channels = 0;  // 1 or 3

  ImageView View() const {
    return {.pixels = pixels.data(),
            .width = width,
            .height = height,
            .stride = width * channels,
            .channels = channels};
  }
};

// The first picture of a file, as load_image of transformers reads it: turned upright as its EXIF
// data say, palettes resolved, without its alpha channel, CMYK as Pillow converts it; of 16 bits
// the higher 8, but of grey the value cut off at 255, as Pillow does. XMP data are not read.
//
// kInvalidArgument and a sentence for what is no such file, broken, cut short or animated, larger
// than 256 MiB, or of more pixels than ImageView may have, which is found before memory for them is
// taken; kOutOfMemory; the errors of reading.
Result<DecodedImage> ReadImage(const std::string& path);
// The same of a file's bytes; `name` is for the sentence.
Result<DecodedImage> DecodeImage(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace encore::images

#endif  // ENCORE_TOOLS_IMAGES_DECODE_IMAGE_H_
