// SPDX-License-Identifier: Apache-2.0
//
// Image processors beside transformers' pixels (tests/data/images), which files they are read from,
// and what they refuse.

#include "engine/images/image_processor.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/drawn_picture.h"
#include "tests/support/safetensors_bytes.h"

namespace encore::inline v0_1::internal {
namespace {

using nlohmann::json;

class ImageProcessorTest : public testing::Test {
 protected:
  void Write(const std::string& name, const json& content) const {
    std::ofstream(folder_.File(name)) << content;
  }
  Result<ImageProcessor> Open(bool ignore_unknown_keys = false) const {
    const Result<Folder> folder = Folder::Open(folder_.File(""));
    if (!folder.ok()) return folder.status();
    return ImageProcessor::Open(*folder, ignore_unknown_keys);
  }
  Result<ImageProcessor> OpenWith(const json& config) const {
    Write("preprocessor_config.json", config);
    return Open();
  }
  // What opening a CLIP processor with this member says.
  std::string Refusal(const std::string& key, const json& value) const {
    json config = {{"image_processor_type", "CLIPImageProcessor"}};
    config[key] = value;
    const Result<ImageProcessor> opened = OpenWith(config);
    return opened.ok() ? "opened" : opened.status().message();
  }

  const TemporaryFolder folder_;
};

// pixel_values, f32 [3, height, width].
std::vector<float> Values(const ImageProcessor& processor, std::span<const uint8_t> bytes) {
  std::vector<float> values;
  if (processor.makes_floats()) {
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    for (size_t c = 0; c < 3; ++c) {
      for (size_t i = c; i < floats.size(); i += 3) values.push_back(floats[i]);
    }
    return values;
  }
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = c; i < bytes.size(); i += 3) values.push_back(processor.values()[c][bytes[i]]);
  }
  return values;
}

TEST_F(ImageProcessorTest, HasTransformersPixels) {
  std::ifstream file(ENCORE_TEST_DATA_DIR "/images/processors.json");
  const json data = json::parse(file);
  for (const json& one : data["cases"]) {
    SCOPED_TRACE(one["name"]);
    const Result<ImageProcessor> processor = OpenWith(one["config"]);
    ASSERT_TRUE(processor.ok()) << processor.status();
    EXPECT_EQ(processor->height(), one["output"][0]);
    EXPECT_EQ(processor->width(), one["output"][1]);
    for (size_t i = 0; i < data["pictures"].size(); ++i) {
      const json& shape = data["pictures"][i];
      const DrawnPicture picture(static_cast<uint32_t>(1000 + i), shape[0], shape[1], shape[2]);
      std::vector<uint8_t> bytes(processor->size_bytes(), 99);
      const Status status = processor->Process(picture.View(), bytes);
      ASSERT_EQ(status.ok(), !one["crc"][i].is_null()) << status;
      if (!status.ok()) continue;
      const std::vector<float> values = Values(*processor, bytes);
      const auto* const begin = reinterpret_cast<const uint8_t*>(values.data());
      EXPECT_EQ(Crc32({begin, values.size() * sizeof(float)}), one["crc"][i]) << shape;
    }
  }
}

TEST_F(ImageProcessorTest, ReadsTheNestedConfigurationFirst) {
  EXPECT_EQ(Open().status().code(), ErrorCode::kNotFound);
  Write("preprocessor_config.json", {{"image_processor_type", "ViTImageProcessor"}, {"size", 32}});
  EXPECT_EQ(Open().value().width(), 32u);
  Write("processor_config.json", {{"processor_class", "CLIPProcessor"}});
  EXPECT_EQ(Open().value().width(), 32u);
  Write("processor_config.json",
        {{"image_processor", {{"image_processor_type", "ViTImageProcessor"}, {"size", 48}}}});
  EXPECT_EQ(Open().value().width(), 48u);
}

TEST_F(ImageProcessorTest, TakesTheClassOfTheModelsType) {
  Write("preprocessor_config.json", json::object());
  EXPECT_NE(Open().status().message().find("model_type is ''; wanted"), std::string::npos)
      << Open().status();
  Write("config.json", {{"model_type", "siglip"}});
  EXPECT_EQ(Open().value().config().source, "preprocessor_config.json: SiglipImageProcessor");
  Write("config.json", {{"model_type", "dinov3_vit"}});
  EXPECT_TRUE(Open().value().makes_floats());
  Write("config.json", {{"model_type", "siglip2"}});
  EXPECT_EQ(Open().status().message(),
            "preprocessor_config.json names no class, and config.json: model_type is 'siglip2', "
            "which makes patches of pictures of any size (NaFlex); wanted an image processor of "
            "BitImageProcessor, CLIPImageProcessor, ConvNextImageProcessor, DeiTImageProcessor, "
            "DINOv3ViTImageProcessor, SiglipImageProcessor, ViTImageProcessor");
}

TEST_F(ImageProcessorTest, RefusesByName) {
  const std::string file = "preprocessor_config.json: ";
  EXPECT_EQ(Refusal("image_processor_type", "BlipImageProcessor"),
            file +
                "image_processor_type is 'BlipImageProcessor'; wanted an image processor of "
                "BitImageProcessor, CLIPImageProcessor, ConvNextImageProcessor, "
                "DeiTImageProcessor, DINOv3ViTImageProcessor, SiglipImageProcessor, "
                "ViTImageProcessor");
  const std::string size_wanted =
      "; wanted a number of 1 .. 8192, or an object with height and width, shortest_edge, "
      "shortest_edge and longest_edge, or max_height and max_width";
  EXPECT_EQ(Refusal("size", 0), file + "size is 0" + size_wanted);
  EXPECT_EQ(Refusal("size", 1e300), file + "size is 1e+300" + size_wanted);
  EXPECT_EQ(Refusal("size", {{"longest_edge", 3}}), file + "size is an object" + size_wanted);
  EXPECT_EQ(Refusal("size", {{"height", 3}, {"width", 9000}}),
            file + "size is an object" + size_wanted);
  EXPECT_EQ(Refusal("size", {{"height", 3}, {"width", 3}, {"shortest_edge", 3}}),
            file + "size is an object" + size_wanted);
  EXPECT_EQ(Refusal("crop_size", {{"shortest_edge", 3}}),
            file + "crop_size is an object; wanted a number, or an object with height and width");
  EXPECT_EQ(Refusal("do_center_crop", false),
            file +
                "size is absent; wanted an output of one size: height and width, or a centre "
                "crop");
  EXPECT_EQ(Refusal("resample", 6),
            file +
                "resample is 6; wanted 0 nearest, 1 Lanczos, 2 bilinear, 3 bicubic, 4 box or 5 "
                "Hamming");
  EXPECT_EQ(Refusal("do_pad", true), file + "do_pad is true; wanted false");
  EXPECT_EQ(Refusal("image_mean", {1, 2}), file + "image_mean is an array of 2; wanted 3 numbers");
  EXPECT_EQ(Refusal("image_mean", 1e300), file + "image_mean is 1e+300; wanted 3 numbers");
  EXPECT_EQ(Refusal("image_std", {1, 0, 1}),
            file + "image_std is an array of 3; wanted 3 numbers other than 0");
  EXPECT_EQ(Refusal("image_std", "x"), file + "image_std is 'x'; wanted 3 numbers other than 0");
  EXPECT_EQ(Refusal("rescale_factor", 1e300),
            file + "rescale_factor is 1e+300; wanted a number like 1 / 255");
  EXPECT_EQ(Refusal("do_resize", 1), file + "do_resize is 1; wanted true or false");
  EXPECT_EQ(Refusal("rescale_offset", true),
            file +
                "unknown key 'rescale_offset'; it may change the result (ignore_unknown_keys "
                "lets it pass)");
  const Result<ImageProcessor> ignoring = Open(/*ignore_unknown_keys=*/true);
  ASSERT_TRUE(ignoring.ok()) << ignoring.status();
  EXPECT_EQ(ignoring->config().ignored, std::vector<std::string>{"rescale_offset"});

  json config = {{"image_processor_type", "ConvNextImageProcessor"}, {"crop_pct", 0}};
  config["size"] = 100;
  EXPECT_EQ(OpenWith(config).status().message(), file + "crop_pct is 0; wanted about 0.9");
  config["crop_pct"] = 0.9;
  config["do_center_crop"] = true;
  config["crop_size"] = 50;
  EXPECT_EQ(OpenWith(config).status().message(),
            file + "do_center_crop is true; wanted false beside crop_pct");
  const auto of_floats = [&](const std::string& key, const json& value) {
    const Result<ImageProcessor> opened =
        OpenWith({{"image_processor_type", "DINOv3ViTImageProcessor"}, {key, value}});
    return opened.ok() ? "opened" : std::string(opened.status().message());
  };
  EXPECT_EQ(of_floats("resample", 1),
            file + "resample is 1; wanted 2 bilinear or 3 bicubic, as floats are resized");
  EXPECT_EQ(of_floats("crop_size", 7), "opened");  // without do_center_crop
  EXPECT_EQ(of_floats("do_rescale", false),
            file + "do_rescale is false; wanted true, as floats are resized");
  EXPECT_EQ(OpenWith({{"image_processor_type", "DINOv3ViTImageProcessor"},
                      {"do_center_crop", true},
                      {"crop_size", 7}})
                .status()
                .message(),
            file + "do_center_crop is true; wanted false, as floats are resized");
  Write("preprocessor_config.json", json::array());
  EXPECT_EQ(Open().status().message(), file + "found an array of 0; wanted an object");
}

TEST_F(ImageProcessorTest, RefusesViewsThatDoNotFit) {
  const Result<ImageProcessor> processor =
      OpenWith({{"image_processor_type", "ViTImageProcessor"}});
  ASSERT_TRUE(processor.ok());
  const uint8_t pixel[4] = {};
  std::vector<uint8_t> bytes(processor->size_bytes());
  const ImageView good = {.pixels = pixel, .width = 1, .height = 1, .stride = 3, .channels = 3};
  ASSERT_TRUE(processor->Process(good, bytes).ok());
  EXPECT_EQ(processor->Process(good, std::span(bytes).first(9)).message(),
            "out: found 9 bytes; wanted 150528, of 224 x 224 RGB pixels");
  const auto refusal = [&](void (*change)(ImageView*)) {
    ImageView bad = good;
    change(&bad);
    const Status status = processor->Process(bad, bytes);
    EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(refusal([](ImageView* view) { view->channels = 2; }),
            "image: 1 x 1 pixels of 2 channels; wanted 1, 3 or 4 channels");
  EXPECT_EQ(refusal([](ImageView* view) { view->width = 0; }),
            "image: 0 x 1 pixels of 3 channels; wanted edges of 1 .. 1048576");
  EXPECT_EQ(refusal([](ImageView* view) { view->height = SIZE_MAX; }),
            "image: 1 x 18446744073709551615 pixels of 3 channels; wanted edges of 1 .. 1048576");
  EXPECT_EQ(refusal([](ImageView* view) { view->height = view->width = 20000; }),
            "image: 20000 x 20000 pixels of 3 channels; wanted at most 178956970 pixels");
  EXPECT_EQ(refusal([](ImageView* view) { view->stride = 2; }),
            "image: 1 x 1 pixels of 3 channels, rows of 2 bytes; wanted at least 3");
  EXPECT_EQ(refusal([](ImageView* view) {
              view->height = 9;
              view->stride = SIZE_MAX / 8;
            }),
            "image: 1 x 9 pixels of 3 channels, rows of 2305843009213693951 bytes; wanted what "
            "fits into memory");
  EXPECT_EQ(refusal([](ImageView* view) { view->pixels = nullptr; }),
            "image: 1 x 1 pixels of 3 channels, found a null pointer to pixels");
}

// Resizing the shorter edge to 8192 would make the longer one of 2^33.
TEST_F(ImageProcessorTest, RefusesEdgesThatResizingMakesTooLong) {
  const Result<ImageProcessor> processor =
      OpenWith({{"image_processor_type", "CLIPImageProcessor"}, {"size", 8192}});
  ASSERT_TRUE(processor.ok());
  const std::vector<uint8_t> row(1 << 20, 9);
  const ImageView wide = {
      .pixels = row.data(), .width = row.size(), .height = 1, .stride = row.size(), .channels = 1};
  std::vector<uint8_t> bytes(processor->size_bytes());
  EXPECT_EQ(processor->Process(wide, bytes).message(),
            "image: 1048576 x 1 pixels; wanted a ratio of edges that resizing leaves edges of 1 .. "
            "2^30 pixels");
}

TEST_F(ImageProcessorTest, RoundingModesDoNotMatter) {
  const DrawnPicture picture(1, 301, 407, 3);
  const auto made = [&](int mode, const char* type) {
    std::fesetround(mode);
    const Result<ImageProcessor> processor = OpenWith({{"image_processor_type", type}});
    std::vector<uint8_t> bytes(processor->size_bytes());
    const Status status = processor->Process(picture.View(), bytes);
    std::fesetround(FE_TONEAREST);
    EXPECT_TRUE(status.ok()) << status;
    return Values(*processor, bytes);
  };
  for (const char* const type : {"CLIPImageProcessor", "DINOv3ViTImageProcessor"}) {
    const std::vector<float> nearest = made(FE_TONEAREST, type);
    const std::vector<float> upward = made(FE_UPWARD, type);
    EXPECT_EQ(std::memcmp(nearest.data(), upward.data(), nearest.size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace encore::internal
