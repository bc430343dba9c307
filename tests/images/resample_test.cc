// SPDX-License-Identifier: Apache-2.0
//
// Resizing beside Pillow's bytes (tests/data/images), and windows, strides and channels beside the
// whole.

#include "engine/images/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/images/drawn_picture.h"

namespace encore::inline v0_1::internal {
namespace {

std::vector<uint8_t> Resampled(const ImageView& view, ResampleFilter filter,
                               const ImageWindow& window) {
  std::vector<uint8_t> out(window.rows * window.columns * 3);
  Resample(view, filter, window, out.data(), window.columns * 3);
  return out;
}
ImageWindow Whole(size_t height, size_t width) {
  return {.height = height, .width = width, .rows = height, .columns = width};
}

TEST(ResampleTest, HasPillowsBytes) {
  std::ifstream file(ENCORE_TEST_DATA_DIR "/images/resample.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 300u);
  for (const nlohmann::json& one : cases) {
    const DrawnPicture picture(one[0], one[1], one[2], one[3]);
    const auto filter = static_cast<ResampleFilter>(one[6].get<int>());
    EXPECT_EQ(Crc32(Resampled(picture.View(), filter, Whole(one[4], one[5]))), one[7]) << one;
  }
}

// Of pictures that are narrowed first, and lowered first.
TEST(ResampleTest, WindowsAreCutFromTheWhole) {
  for (int filter = 0; filter < 12; ++filter) {
    const DrawnPicture picture(3, filter < 6 ? 300 : 900, filter < 6 ? 700 : 200, 3);
    const auto kind = static_cast<ResampleFilter>(filter % 6);
    const std::vector<uint8_t> whole = Resampled(picture.View(), kind, Whole(211, 97));
    const ImageWindow window = {
        .height = 211, .width = 97, .top = 30, .left = 11, .rows = 57, .columns = 60};
    const std::vector<uint8_t> part = Resampled(picture.View(), kind, window);
    for (size_t row = 0; row < window.rows; ++row) {
      const auto expected = whole.begin() + static_cast<ptrdiff_t>(((30 + row) * 97 + 11) * 3);
      EXPECT_TRUE(
          std::equal(expected, expected + 180, part.begin() + static_cast<ptrdiff_t>(row * 180)))
          << filter << ", row " << row;
    }
  }
}

TEST(ResampleTest, StridesAndAlphaDoNotMatter) {
  const DrawnPicture picture(6, 41, 53, 3);
  constexpr size_t kStride = 53 * 4 + 9;
  std::vector<uint8_t> padded(41 * kStride, 77);
  for (size_t y = 0; y < 41; ++y) {
    for (size_t x = 0; x < 53; ++x) {
      for (size_t c = 0; c < 3; ++c) {
        padded[y * kStride + 4 * x + c] = picture.pixels[(y * 53 + x) * 3 + c];
      }
      padded[y * kStride + 4 * x + 3] = 255;
    }
  }
  const ImageView opaque = {
      .pixels = padded.data(), .width = 53, .height = 41, .stride = kStride, .channels = 4};
  // Either direction first.
  for (const ImageWindow& window : {Whole(20, 90), Whole(90, 20)}) {
    EXPECT_EQ(Resampled(opaque, ResampleFilter::kBicubic, window),
              Resampled(picture.View(), ResampleFilter::kBicubic, window));
  }
}

// Of a transparent pixel nothing is left, of half a one half.
TEST(ResampleTest, LaysPicturesOnWhite) {
  const uint8_t pixels[] = {10, 20, 30, 0, 10, 20, 30, 51, 10, 20, 30, 255};
  const ImageView view = {.pixels = pixels, .width = 3, .height = 1, .stride = 12, .channels = 4};
  EXPECT_EQ(Resampled(view, ResampleFilter::kBicubic, Whole(1, 3)),
            (std::vector<uint8_t>{255, 255, 255, 206, 208, 210, 10, 20, 30}));
}

// Weights of so many source pixels, and rows of one.
TEST(ResampleTest, TakesLongPictures) {
  std::vector<uint8_t> grey(1 << 20);
  for (size_t i = 0; i < grey.size(); ++i) grey[i] = static_cast<uint8_t>(i >> 12);
  const ImageView wide = {
      .pixels = grey.data(), .width = grey.size(), .height = 1, .stride = 1 << 20, .channels = 1};
  const ImageView tall = {
      .pixels = grey.data(), .width = 1, .height = grey.size(), .stride = 1, .channels = 1};
  for (const ResampleFilter filter : {ResampleFilter::kNearest, ResampleFilter::kLanczos}) {
    const std::vector<uint8_t> across = Resampled(wide, filter, Whole(1, 5));
    EXPECT_EQ(across, Resampled(tall, filter, Whole(5, 1)));
    EXPECT_NEAR(across[6], 128, 1);
  }
}

}  // namespace
}  // namespace encore::internal
