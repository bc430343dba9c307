// SPDX-License-Identifier: Apache-2.0
//
// The folders of tests/data/heads, copies of them, and what is expected of them.

#ifndef ENCORE_TESTS_TEXT_HEAD_FOLDERS_H_
#define ENCORE_TESTS_TEXT_HEAD_FOLDERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "encore/tensor.h"
#include "encore/text_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/support/compare.h"

namespace encore {

inline constexpr double kHeadTolerance = 1e-6;  // of the largest magnitude

inline std::string FolderOf(const std::string& name) {
  return std::string(ENCORE_TEST_DATA_DIR "/heads/") + name;
}

// Those whose names begin so.
inline std::vector<std::string> FoldersNamed(const std::string& start) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(FolderOf(""))) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(start)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline nlohmann::json ExpectedOf(const std::string& name) {
  return nlohmann::json::parse(std::ifstream(FolderOf(name) + "/expected.json"));
}

inline std::vector<std::string> TextsOf(const nlohmann::json& expected) {
  return expected.at("texts").get<std::vector<std::string>>();
}

// rows: [[numbers]].
inline void ExpectNear(std::span<const float> found, const nlohmann::json& rows) {
  std::vector<double> expected;
  double largest = 0;
  for (const nlohmann::json& row : rows) {
    for (const double value : row) {
      expected.push_back(value);
      largest = std::max(largest, std::fabs(value));
    }
  }
  ASSERT_EQ(found.size(), expected.size());
  double worst = 0;
  EXPECT_TRUE(Near({found.begin(), found.end()}, expected, kHeadTolerance * largest, &worst));
}

inline std::span<const float> ValuesOf(const Tensor& tensor) {
  return {static_cast<const float*>(tensor.data()), tensor.size_bytes() / sizeof(float)};
}

// A copy of a folder whose tensors a test changes.
class CopiedFolder {
 public:
  explicit CopiedFolder(const std::string& name)
      : path_(testing::TempDir() + "encore_heads_" + name) {
    std::filesystem::remove_all(path_);
    std::filesystem::copy(FolderOf(name), path_, std::filesystem::copy_options::recursive);
  }
  ~CopiedFolder() { std::filesystem::remove_all(path_); }
  CopiedFolder(const CopiedFolder&) = delete;
  CopiedFolder& operator=(const CopiedFolder&) = delete;

  const std::string& path() const { return path_; }
  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(path_ + "/" + file) << text;
  }
  // A sentence with all of these.
  void ExpectRefused(const std::vector<std::string>& words) const {
    EXPECT_TRUE(FailsWith(TextEncoder::Open(path_), words, kAnyCode));
  }

 private:
  std::string path_;
};

}  // namespace encore

#endif  // ENCORE_TESTS_TEXT_HEAD_FOLDERS_H_
