// SPDX-License-Identifier: Apache-2.0
//
// Resizing beside Pillow's bytes (tests/data/images), and windows, strides and channels beside the
// whole.

#include "encore/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "reference/resize.h"
#include "tests/support/drawn_picture.h"
#include "tests/support/sanitizers.h"
#include "tests/support/targets.h"

namespace encore {
namespace {

std::vector<uint8_t> Resized(const ImageView& view, ResizeFilter filter,
                             const ResizeWindow& window) {
  std::vector<uint8_t> out(window.rows * window.columns * 3);
  const Status status = ResizeImage(view, filter, window, out.data(), window.columns * 3);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}
ResizeWindow Whole(size_t height, size_t width) {
  return {.height = height, .width = width, .rows = height, .columns = width};
}

TEST(ResizeTest, HasPillowsBytesOnEveryTarget) {
  std::ifstream file(ENCORE_TEST_DATA_DIR "/images/resample.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 300u);
  ForEachTarget([&](const std::string&) {
    for (const nlohmann::json& one : cases) {
      const DrawnPicture picture(one[0], one[1], one[2], one[3]);
      const auto filter = static_cast<ResizeFilter>(one[6].get<int>());
      EXPECT_EQ(Crc32(Resized(picture.View(), filter, Whole(one[4], one[5]))), one[7]) << one;
    }
  });
}

// The definition beside the kernels: sizes of all magnitudes, kept edges, all filters.
TEST(ResizeTest, IsTheDefinitionOnEveryTarget) {
  ForEachTarget([&](const std::string&) {
    std::mt19937 random(11);
    const auto edge = [&](size_t most) {
      return std::max<size_t>(1, (random() % most) >> random() % 8);
    };
    for (int i = 0; i < (kEmulated ? 30 : 180); ++i) {
      const DrawnPicture picture(random(), edge(400), edge(400), 3);
      const size_t height = i % 10 == 0 ? picture.height : edge(300);
      const size_t width = i % 13 == 0 ? picture.width : edge(300);
      const auto filter = static_cast<ResizeFilter>(i % 6);
      EXPECT_TRUE(
          Resized(picture.View(), filter, Whole(height, width)) ==
          reference::Resize(picture.pixels, picture.height, picture.width, height, width, filter))
          << i % 6 << ": " << picture.height << " x " << picture.width << " to " << height << " x "
          << width;
    }
  });
}

// Of pictures that are narrowed first, and lowered first.
TEST(ResizeTest, WindowsAreCutFromTheWhole) {
  for (int filter = 0; filter < 12; ++filter) {
    const DrawnPicture picture(3, filter < 6 ? 300 : 900, filter < 6 ? 700 : 200, 3);
    const auto kind = static_cast<ResizeFilter>(filter % 6);
    const std::vector<uint8_t> whole = Resized(picture.View(), kind, Whole(211, 97));
    const ResizeWindow window = {
        .height = 211, .width = 97, .top = 30, .left = 11, .rows = 57, .columns = 60};
    const std::vector<uint8_t> part = Resized(picture.View(), kind, window);
    for (size_t row = 0; row < window.rows; ++row) {
      const auto expected = whole.begin() + static_cast<ptrdiff_t>(((30 + row) * 97 + 11) * 3);
      EXPECT_TRUE(
          std::equal(expected, expected + 180, part.begin() + static_cast<ptrdiff_t>(row * 180)))
          << filter << ", row " << row;
    }
  }
}

TEST(ResizeTest, StridesAndAlphaDoNotMatter) {
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
  for (const ResizeWindow& window : {Whole(20, 90), Whole(90, 20)}) {
    EXPECT_EQ(Resized(opaque, ResizeFilter::kBicubic, window),
              Resized(picture.View(), ResizeFilter::kBicubic, window));
  }
}

// Of a transparent pixel nothing is left, of half a one half.
TEST(ResizeTest, LaysPicturesOnWhite) {
  const uint8_t pixels[] = {10, 20, 30, 0, 10, 20, 30, 51, 10, 20, 30, 255};
  const ImageView view = {.pixels = pixels, .width = 3, .height = 1, .stride = 12, .channels = 4};
  EXPECT_EQ(Resized(view, ResizeFilter::kBicubic, Whole(1, 3)),
            (std::vector<uint8_t>{255, 255, 255, 206, 208, 210, 10, 20, 30}));
}

// Weights of so many source pixels, and rows of one.
TEST(ResizeTest, TakesLongPictures) {
  std::vector<uint8_t> grey(1 << 20);
  for (size_t i = 0; i < grey.size(); ++i) grey[i] = static_cast<uint8_t>(i >> 12);
  const ImageView wide = {
      .pixels = grey.data(), .width = grey.size(), .height = 1, .stride = 1 << 20, .channels = 1};
  const ImageView tall = {
      .pixels = grey.data(), .width = 1, .height = grey.size(), .stride = 1, .channels = 1};
  for (const ResizeFilter filter : {ResizeFilter::kNearest, ResizeFilter::kLanczos}) {
    const std::vector<uint8_t> across = Resized(wide, filter, Whole(1, 5));
    EXPECT_EQ(across, Resized(tall, filter, Whole(5, 1)));
    EXPECT_NEAR(across[6], 128, 1);
  }
}

TEST(ResizeTest, RefusesWhatDoesNotFit) {
  const DrawnPicture picture(1, 4, 5, 3);
  std::vector<uint8_t> out(300);
  const auto refusal = [&](const ResizeWindow& window, size_t stride,
                           ResizeFilter filter = ResizeFilter::kBox) {
    const Status status = ResizeImage(picture.View(), filter, window, out.data(), stride);
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(refusal(Whole(0, 3), 9), "window: a height of 0; wanted 1 .. 2^30");
  EXPECT_EQ(refusal(Whole(1, (size_t{1} << 30) + 1), 9),
            "window: a width of 1073741825; wanted 1 .. 2^30");
  ResizeWindow window = Whole(10, 10);
  window.left = 1;
  EXPECT_EQ(refusal(window, 30),
            "window: 10 from 1 on, of a width of 10; wanted at least 1 within it");
  window.left = SIZE_MAX;
  EXPECT_NE(refusal(window, 30).find("within it"), std::string::npos);
  window = Whole(10, 10);
  window.rows = 0;
  EXPECT_NE(refusal(window, 30).find("window: 0 from 0 on, of a height of 10"), std::string::npos);
  EXPECT_EQ(refusal(Whole(10, 10), 29), "out: rows of 29 bytes; wanted at least 30");
  EXPECT_EQ(refusal(Whole(10, 10), 30, static_cast<ResizeFilter>(6)), "filter: 6; wanted 0 .. 5");
  EXPECT_EQ(ResizeImage(picture.View(), ResizeFilter::kBox, Whole(2, 2), nullptr, 6).message(),
            "out: found a null pointer; wanted memory for rows");
  EXPECT_EQ(ResizeImage({}, ResizeFilter::kBox, Whole(2, 2), out.data(), 6).message(),
            "image: 0 x 0 pixels of 3 channels; wanted edges of 1 .. 1048576");
}

}  // namespace
}  // namespace encore
