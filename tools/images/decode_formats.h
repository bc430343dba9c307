// SPDX-License-Identifier: Apache-2.0
//
// A function for each format of pictures. What their libraries allocate and jump over lies in these
// files alone.

#ifndef ENCORE_TOOLS_IMAGES_DECODE_FORMATS_H_
#define ENCORE_TOOLS_IMAGES_DECODE_FORMATS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/images/decode_image.h"

namespace encore::images {

// What a format's decoder gives: a picture, or the sentence that says why not.
struct Decoding {
  DecodedImage image = {};
  std::vector<uint8_t> exif = {};  // TIFF, with or without "Exif" and two zeros before it
  std::string fault = {};

  // Takes the memory for a picture; false with a fault where it has too many pixels, or none.
  bool Allocate(size_t height, size_t width, size_t channels);
};

// With ENCORE_HAVE_PNG, ENCORE_HAVE_JPEG and ENCORE_HAVE_WEBP. std::bad_alloc.
void DecodePng(std::span<const uint8_t> bytes, Decoding* decoding);
void DecodeJpeg(std::span<const uint8_t> bytes, Decoding* decoding);
void DecodeWebp(std::span<const uint8_t> bytes, Decoding* decoding);

}  // namespace encore::images

#endif  // ENCORE_TOOLS_IMAGES_DECODE_FORMATS_H_
