// SPDX-License-Identifier: Apache-2.0
//
// WebP by libwebp.

#ifdef ENCORE_HAVE_WEBP

#include <webp/decode.h>

#include "tools/images/decode_formats.h"

namespace encore::images {
namespace {

// The data of the chunk "EXIF" of a RIFF file, or nothing.
std::span<const uint8_t> FindExif(std::span<const uint8_t> bytes) {
  size_t at = 12;  // after "RIFF", a size and "WEBP"
  while (bytes.size() - at >= 8) {
    const std::span<const uint8_t> chunk = bytes.subspan(at);
    size_t size = 0;
    for (size_t i = 8; i-- > 4;) size = size << 8 | chunk[i];
    if (size > chunk.size() - 8) break;
    if (std::string(chunk.begin(), chunk.begin() + 4) == "EXIF") return chunk.subspan(8, size);
    if (size + size % 2 > chunk.size() - 8) break;
    at += 8 + size + size % 2;
  }
  return {};
}

}  // namespace

void DecodeWebp(std::span<const uint8_t> bytes, Decoding* decoding) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) {
    decoding->fault = "no valid header";
    return;
  }
  if (features.has_animation != 0) {
    decoding->fault = "an animation; wanted one picture";
    return;
  }
  const auto height = static_cast<size_t>(features.height);
  const auto width = static_cast<size_t>(features.width);
  if (!decoding->Allocate(height, width, 3)) return;
  std::vector<uint8_t>& pixels = decoding->image.pixels;
  if (WebPDecodeRGBInto(bytes.data(), bytes.size(), pixels.data(), pixels.size(),
                        static_cast<int>(3 * width)) == nullptr) {
    decoding->fault = "damaged, or the file ends too early";
    return;
  }
  const std::span<const uint8_t> exif = FindExif(bytes);
  decoding->exif.assign(exif.begin(), exif.end());
}

}  // namespace encore::images

#endif  // ENCORE_HAVE_WEBP
