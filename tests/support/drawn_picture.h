// SPDX-License-Identifier: Apache-2.0
//
// Pictures drawn from a seed, the same as tests/make/make_image_fixtures.py draws, and CRC-32 sums.

#ifndef ENCORE_TESTS_SUPPORT_DRAWN_PICTURE_H_
#define ENCORE_TESTS_SUPPORT_DRAWN_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "encore/image_view.h"

namespace encore {

struct DrawnPicture {
  size_t height, width, channels;
  std::vector<uint8_t> pixels;

  DrawnPicture(uint32_t seed, size_t picture_height, size_t picture_width, size_t count)
      : height(picture_height), width(picture_width), channels(count) {
    std::mt19937 generator(seed);
    uint32_t bits = 0;
    for (size_t i = 0; i < height * width * channels; ++i) {
      bits = i % 4 == 0 ? static_cast<uint32_t>(generator()) : bits >> 8;
      uint32_t value = bits & 255;
      if (seed % 3 == 1) value = value * static_cast<uint32_t>(i % 256) / 255;
      if (seed % 3 == 2) value = value < 128 ? 0 : 255;
      pixels.push_back(static_cast<uint8_t>(value));
    }
  }
  ImageView View() const {
    return {.pixels = pixels.data(),
            .width = width,
            .height = height,
            .stride = width * channels,
            .channels = channels};
  }
};

// As zlib's crc32.
inline uint32_t Crc32(std::span<const uint8_t> bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

}  // namespace encore

#endif  // ENCORE_TESTS_SUPPORT_DRAWN_PICTURE_H_
