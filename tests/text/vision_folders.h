// SPDX-License-Identifier: Apache-2.0
//
// The pictures that the folders of tests/data/vision were made with, and what was expected.

#ifndef ENCORE_TESTS_TEXT_VISION_FOLDERS_H_
#define ENCORE_TESTS_TEXT_VISION_FOLDERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "encore/image_encoder.h"
#include "encore/safetensors.h"
#include "tests/support/drawn_picture.h"
#include "tests/support/model_folder.h"

namespace encore::pictures {

inline const std::string kVision = ENCORE_TEST_DATA_DIR "/vision/";
// Of the largest magnitude.
inline constexpr double kTolerance = 2e-6;

// Wide, tall, tiny, large, of the very size, grey, of few colours, with alpha, and turned: as
// make_vision_folders.py draws them.
inline const std::vector<DrawnPicture>& Pictures() {
  static const auto* const pictures = new std::vector<DrawnPicture>{
      {1, 30, 91, 3}, {4, 80, 21, 3}, {3, 2, 3, 3},    {6, 301, 257, 3}, {9, 32, 32, 3},
      {7, 50, 41, 1}, {5, 45, 64, 3}, {10, 37, 33, 4}, {12, 64, 45, 3}};
  return *pictures;
}

inline std::vector<ImageView> Views() {
  std::vector<ImageView> views;
  for (const DrawnPicture& picture : Pictures()) views.push_back(picture.View());
  return views;
}

inline std::vector<float> Floats(const Tensor& found) {
  const auto* data = static_cast<const float*>(found.data());
  return {data, data + found.size_bytes() / sizeof(float)};
}

inline std::vector<float> Floats(const Result<Tensor>& found) {
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found.ok() ? Floats(*found) : std::vector<float>();
}

// Of found against expected, relative to the largest magnitude.
inline double LargestDifference(const std::vector<float>& found,
                                const std::vector<double>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double largest = 0;
  double worst = 0;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    worst = std::max(worst, std::fabs(static_cast<double>(found[i]) - expected[i]));
  }
  return worst / largest;
}

inline std::vector<double> ExpectedOf(const std::string& folder, const std::string& name) {
  const SafetensorsFile file = Taken(SafetensorsFile::Open(folder + "/expected.safetensors"));
  const Tensor tensor = Taken(file.Read(name));
  const auto* data = static_cast<const double*>(tensor.data());
  return {data, data + tensor.size_bytes() / sizeof(double)};
}

inline std::string ErrorOf(const ModelFolder& folder, const OpenOptions& options = {}) {
  const Result<ImageEncoder> model = ImageEncoder::Open(folder.File(""), options);
  EXPECT_FALSE(model.ok());
  return model.ok() ? "" : std::string(model.status().message());
}

inline bool Has(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

}  // namespace encore::pictures

#endif  // ENCORE_TESTS_TEXT_VISION_FOLDERS_H_
