// SPDX-License-Identifier: Apache-2.0
//
// Pictures in files: decoded as Pillow does (tests/data/images/files.json), damaged ones refused
// with a sentence, and `encore embed --images` beside the library's vectors.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "encore/image_encoder.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cli_runner.h"
#include "tests/support/drawn_picture.h"
#include "tools/images/decode_image.h"

namespace encore {
namespace {

using images::DecodedImage;
using images::DecodeImage;
using nlohmann::json;

const std::string kClip = std::string(ENCORE_TEST_DATA_DIR "/vision/clip");

// Whether this build reads the format that the name ends in.
bool IsRead([[maybe_unused]] const std::string& name) {
#ifndef ENCORE_HAVE_PNG
  if (name.ends_with(".png")) return false;
#endif
#ifndef ENCORE_HAVE_JPEG
  if (name.ends_with(".jpg")) return false;
#endif
#ifndef ENCORE_HAVE_WEBP
  if (name.ends_with(".webp")) return false;
#endif
  return true;
}

std::vector<uint8_t> FromBase64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;
  size_t count = 0;
  for (const char c : text) {
    const size_t digit = digits.find(c);
    if (digit == std::string::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> count));
  }
  return bytes;
}

std::vector<uint8_t> RgbOf(const DecodedImage& image) {
  std::vector<uint8_t> rgb;
  for (const uint8_t value : image.pixels)
    rgb.insert(rgb.end(), image.channels == 1 ? 3 : 1, value);
  return rgb;
}

json FileCases() {
  std::ifstream file(ENCORE_TEST_DATA_DIR "/images/files.json");
  return json::parse(file);
}

// What decoding says, or "decoded".
std::string Said(const std::vector<uint8_t>& bytes) {
  const Result<DecodedImage> image = DecodeImage(bytes, "it");
  return image.ok() ? "decoded" : std::string(image.status().message());
}

TEST(DecodeImageTest, HasPillowsPixels) {
  for (const json& one : FileCases()) {
    const std::string name = one[0];
    SCOPED_TRACE(name);
    const std::vector<uint8_t> bytes = FromBase64(one[1][0]);
    if (!IsRead(name)) {
      EXPECT_TRUE(Has(Said(bytes), "built without the library that reads it")) << Said(bytes);
      continue;
    }
    const DecodedImage image = *DecodeImage(bytes, name);
    EXPECT_EQ(image.height, one[1][1]);
    EXPECT_EQ(image.width, one[1][2]);
    EXPECT_EQ(image.pixels.size(), image.height * image.width * image.channels);
    EXPECT_EQ(Crc32(RgbOf(image)), one[1][3]);
  }
}

// Whatever is changed or cut off, there is a picture or a sentence.
TEST(DecodeImageTest, DamagedFilesAreSentences) {
  std::mt19937 random(1);
  size_t refused = 0;
  for (const json& one : FileCases()) {
    const std::vector<uint8_t> whole = FromBase64(one[1][0]);
    for (int i = 0; i < 60; ++i) {
      std::vector<uint8_t> bytes = whole;
      for (size_t n = random() % 4; n-- > 0;) bytes[random() % bytes.size()] ^= 1 << random() % 8;
      if (i % 3 == 0) bytes.resize(random() % bytes.size());
      const std::string said = Said(bytes);
      refused += said == "decoded" ? 0 : 1;
      EXPECT_TRUE(said == "decoded" || said.starts_with("it: ")) << said;
      for (const char c : said) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << said;
    }
  }
  EXPECT_GT(refused, 500u);
}

TEST(DecodeImageTest, SizesAreCheckedBeforeDecoding) {
  for (const json& one : FileCases()) {
    if (one[0] != "rgb.png" || !IsRead(one[0])) continue;
    std::vector<uint8_t> bytes = FromBase64(one[1][0]);
    const auto with_size = [&](const std::vector<uint8_t>& size) {
      std::copy(size.begin(), size.end(), bytes.begin() + 16);
      const uint32_t crc = Crc32({bytes.data() + 12, 17});
      for (size_t i = 0; i < 4; ++i) bytes[29 + i] = static_cast<uint8_t>(crc >> (24 - 8 * i));
      return Said(bytes);
    };
    EXPECT_EQ(with_size({0, 1, 0, 0, 0, 1, 0, 0}),
              "it: a PNG file: image: 65536 x 65536 pixels of 3 channels; wanted at most 178956970 "
              "pixels");
    EXPECT_TRUE(with_size({0x7F, 0, 0, 0, 0, 0, 0, 1}).starts_with("it: a PNG file: "));
  }
  EXPECT_EQ(Said({'G', 'I', 'F'}), "it: found no PNG, JPEG or WebP file; wanted one");
  EXPECT_EQ(Said({}), "it: found no PNG, JPEG or WebP file; wanted one");
}

class EmbedImagesTest : public CliTest {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(Path("pictures/more"));
    for (const json& one : FileCases()) {
      const std::string name = one[0];
      if (!IsRead(name) || !name.starts_with("rgb")) continue;
      const std::vector<uint8_t> bytes = FromBase64(one[1][0]);
      const std::string path =
          Path(name.ends_with(".webp") ? "pictures/more/" + name : "pictures/" + name);
      WriteFile(path, std::string(bytes.begin(), bytes.end()));
      made_[path] = *DecodeImage(bytes, name);
    }
    WriteFile(Path("pictures/notes.txt"), "no picture");
    if (made_.empty()) GTEST_SKIP() << "built without libraries of pictures";
  }

  CliResult Embed(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all = {"embed", "--images", "--model", kClip};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return Encore(all);
  }

  std::map<std::string, DecodedImage> made_;  // by path, in their order
};

TEST_F(EmbedImagesTest, WritesTheLibrarysVectors) {
  const CliResult result = Embed({"--input", Path("pictures"), "--output", Path("v.jsonl"),
                                  "--output-field", "v", "--threads", "2"});
  ASSERT_EQ(result.status, 0) << result.err;
  const Result<ImageEncoder> model = ImageEncoder::Open(kClip);
  ASSERT_TRUE(model.ok()) << model.status();
  std::ifstream lines(Path("v.jsonl"));
  std::string line;
  for (const auto& [path, image] : made_) {
    ASSERT_TRUE(std::getline(lines, line));
    const json row = json::parse(line);
    EXPECT_EQ(row["id"], path);
    const ImageView view = image.View();
    const Result<Tensor> vectors = model->Encode({&view, 1});
    ASSERT_TRUE(vectors.ok()) << vectors.status();
    const ConstView wanted = vectors->View<float>();
    EXPECT_EQ(row["v"].get<std::vector<float>>(),
              std::vector<float>(wanted.data(), wanted.data() + wanted.dim(1)));
  }
  EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(EmbedImagesTest, TakesListsPicturesAndShards) {
  std::string list;
  for (const auto& [path, image] : made_) list += path + "\n";
  WriteFile(Path("list.txt"), list);
  ASSERT_EQ(Embed({"--input", Path("pictures"), "--output", Path("folder.npy")}).status, 0);
  ASSERT_EQ(Embed({"--input", Path("list.txt"), "--output", Path("list.npy")}).status, 0);
  EXPECT_EQ(ReadFile(Path("folder.npy")), ReadFile(Path("list.npy")));
  const std::vector<std::string> first_of_all = {"--output", Path("1.npy"), "--shard",
                                                 "1/" + std::to_string(made_.size()), "--input"};
  const auto first = [&](const std::string& input) {
    std::vector<std::string> arguments = first_of_all;
    arguments.push_back(input);
    EXPECT_EQ(Embed(arguments).status, 0);
    return ReadFile(Path("1.npy"));
  };
  const std::string shard = first(Path("pictures"));
  EXPECT_EQ(shard, first(Path("list.txt")));
  ASSERT_EQ(Embed({"--input", made_.begin()->first, "--output", Path("one.npy")}).status, 0);
  EXPECT_EQ(shard, ReadFile(Path("one.npy")));
}

TEST_F(EmbedImagesTest, GoesOnWithAnOutput) {
  std::string some, all;
  for (const auto& [path, image] : made_) {
    if (path != made_.rbegin()->first) some += path + "\n";
    all += path + "\n";
  }
  WriteFile(Path("list.txt"), some);
  const std::vector<std::string> arguments = {"--input", Path("list.txt"), "--output",
                                              Path("v.npy"), "--resume"};
  ASSERT_EQ(Embed(arguments).status, 0);
  WriteFile(Path("list.txt"), all);
  const CliResult result = Embed(arguments);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(Has(result.out, "1 picture in ")) << result.out;
  ASSERT_EQ(Embed({"--input", Path("list.txt"), "--output", Path("all.npy")}).status, 0);
  EXPECT_EQ(ReadFile(Path("v.npy")), ReadFile(Path("all.npy")));
  // Another picture of the same name, another path, another setting.
  const std::string last = made_.rbegin()->first;
  const std::string first = ReadFile(made_.begin()->first);
  std::vector<std::string> normalized = arguments;
  normalized.push_back("--normalize");
  EXPECT_TRUE(Has(Embed(normalized).err, "without --normalize"));
  WriteFile(Path("list.txt"), all.substr(0, all.size() - 1 - last.size()));
  EXPECT_TRUE(Has(Embed(arguments).err, "--input only"));
  WriteFile(Path("list.txt"), all);
  WriteFile(last, first);
  const CliResult changed = Embed(arguments);
  EXPECT_EQ(changed.status, 2);
  EXPECT_TRUE(Has(changed.err, "are not those of --output")) << changed.err;
}

TEST_F(EmbedImagesTest, RefusesInSentences) {
  const std::string output = Path("no.npy");
  const auto said = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--output", output});
    const CliResult result = Embed(arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_FALSE(std::filesystem::exists(output));
    return result.err;
  };
  const std::string broken = made_.begin()->first;
  EXPECT_TRUE(Has(said({"--input", broken, "--prompt", "x"}), "are of pictures"));
  EXPECT_TRUE(Has(said({"--input", Path("none.png")}), "none.png"));
  std::filesystem::create_directories(Path("empty"));
  EXPECT_TRUE(Has(said({"--input", Path("empty")}), "found no file whose name ends in .png"));
  WriteFile(broken, ReadFile(broken).substr(0, 60));
  EXPECT_TRUE(Has(said({"--input", Path("pictures")}), broken + ": a "));
}

}  // namespace
}  // namespace encore
