// SPDX-License-Identifier: Apache-2.0
//
// Pictures by the C interface have the bits of ImageEncoder, and what is wrong is refused.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "encore/image_encoder.h"
#include "tests/api/c_api_case.h"
#include "tests/support/drawn_picture.h"
#include "tests/support/results.h"

namespace encore {
namespace {

const std::string kClip = ENCORE_TEST_DATA_DIR "/vision/clip";

encore_open_options ForImages(int32_t threads = 1) {
  auto options = Sized<encore_open_options>();
  options.kind = ENCORE_KIND_IMAGE;
  options.threads = threads;
  return options;
}

class CApiImagesTest : public CApiTest {
 protected:
  static std::vector<encore_image> Images() {
    static const auto* const pictures = new std::vector<DrawnPicture>{
        {1, 30, 91, 3}, {7, 50, 41, 1}, {10, 37, 33, 4}, {3, 2, 3, 3}};
    std::vector<encore_image> images;
    for (const DrawnPicture& picture : *pictures) {
      images.push_back({picture.pixels.data(), picture.width, picture.height, 0, picture.channels});
    }
    return images;
  }
  static std::vector<ImageView> Views() {
    std::vector<ImageView> views;
    for (const encore_image& image : Images()) {
      views.push_back({.pixels = image.pixels,
                       .width = image.width,
                       .height = image.height,
                       .stride = image.width * image.channels,
                       .channels = image.channels});
    }
    return views;
  }
  static encore_status Encode(const encore_model* model, const std::vector<encore_image>& images,
                              std::vector<float>* vectors,
                              const encore_image_options* options = nullptr) {
    return encore_encode_images(model, images.data(), images.size(), options, vectors->data(),
                                vectors->size());
  }
};

TEST_F(CApiImagesTest, VectorsAreThoseOfImageEncoder) {
  const auto encoder = Taken(ImageEncoder::Open(kClip));
  const Tensor expected = Taken(encoder.Encode(Views()));
  const size_t size = expected.size_bytes() / sizeof(float);
  for (const int32_t threads : {1, 2}) {
    const encore_open_options open = ForImages(threads);
    const Model model(kClip, &open);
    EXPECT_EQ(encore_dimensions(model), encoder.dimensions());
    EXPECT_EQ(encore_max_length(model), encoder.tokens());
    EXPECT_EQ(encore_label_count(model), 0u);
    EXPECT_NE(std::string(encore_describe(model)).find("processor: pictures of 32 x 32 pixels"),
              std::string::npos);
    ASSERT_EQ(encore_prepare(model, 100), ENCORE_OK) << encore_last_error();
    std::vector<float> vectors(size, NAN);
    ASSERT_EQ(Encode(model, Images(), &vectors), ENCORE_OK) << encore_last_error();
    EXPECT_EQ(std::memcmp(vectors.data(), expected.data(), expected.size_bytes()), 0);
    auto memory = Sized<encore_model_memory>();
    ASSERT_EQ(encore_memory(model, &memory), ENCORE_OK);
    EXPECT_EQ(memory.packed, encoder.Memory().packed);
    EXPECT_GT(memory.scratch, 0u);
    ASSERT_EQ(encore_trim_memory(model), ENCORE_OK);
    ASSERT_EQ(encore_memory(model, &memory), ENCORE_OK);
    EXPECT_EQ(memory.scratch, 0u);
  }
}

TEST_F(CApiImagesTest, OptionsArrive) {
  const encore_open_options open = ForImages();
  const Model model(kClip, &open);
  const auto encoder = Taken(ImageEncoder::Open(kClip));
  const Tensor expected = Taken(encoder.Encode(Views(), {.normalize = true, .dimensions = 5}));
  auto options = Sized<encore_image_options>();
  options.normalize = ENCORE_YES;
  options.dimensions = 5;
  options.batch_tokens = 1;
  auto stats = Sized<encore_call_stats>();
  auto call = Sized<encore_call_options>();
  call.stats = &stats;
  options.call = &call;
  std::vector<float> vectors(Images().size() * 5, NAN);
  ASSERT_EQ(Encode(model, Images(), &vectors, &options), ENCORE_OK) << encore_last_error();
  EXPECT_EQ(std::memcmp(vectors.data(), expected.data(), expected.size_bytes()), 0);
  EXPECT_EQ(stats.texts, Images().size());
  EXPECT_EQ(stats.tokens, Images().size() * encoder.tokens());
  EXPECT_GT(stats.layers, 0);
  // Rows with bytes between them.
  std::vector<uint8_t> pixels(3 * 20, 7);
  encore_image image = {pixels.data(), 6, 3, 20, 3};
  std::vector<float> one(5), other(5);
  ASSERT_EQ(Encode(model, {image}, &one, &options), ENCORE_OK);
  for (size_t y = 0; y < 3; ++y) pixels[20 * y + 19] = 200;
  ASSERT_EQ(Encode(model, {image}, &other, &options), ENCORE_OK);
  EXPECT_EQ(one, other);
  encore_stop* stop = nullptr;
  ASSERT_EQ(encore_stop_new(&stop), ENCORE_OK);
  encore_stop_set(stop, 1);
  call.stop = stop;
  EXPECT_EQ(Encode(model, {image}, &one, &options), ENCORE_CANCELLED);
  encore_stop_free(stop);
}

TEST_F(CApiImagesTest, WhatIsWrongIsRefused) {
  const encore_open_options open = ForImages();
  const Model model(kClip, &open);
  std::vector<float> vectors(4 * encore_dimensions(model));
  std::vector<encore_image> images = Images();
  const auto fails = [&](const std::vector<std::string>& words) {
    ExpectFailure(Encode(model, images, &vectors), ENCORE_INVALID_ARGUMENT, words);
    images = Images();
  };
  images[2].width = std::numeric_limits<size_t>::max() / 4;
  fails({"image 2: ", "wanted edges of"});
  images[3].channels = 2;
  fails({"image 3: ", "wanted 1, 3 or 4 channels"});
  images[1].pixels = nullptr;
  fails({"image 1: ", "null pointer"});
  images[0].stride = 5;
  fails({"image 0: ", "rows of 5 bytes"});
  images.push_back(images[0]);
  fails({"capacity is ", " floats, wanted 5 x "});
  ExpectFailure(encore_encode_images(model, nullptr, 1, nullptr, vectors.data(), vectors.size()),
                ENCORE_INVALID_ARGUMENT, {"images is NULL"});
  ExpectFailure(encore_encode_images(model, images.data(), 1, nullptr, nullptr, vectors.size()),
                ENCORE_INVALID_ARGUMENT, {"vectors is NULL"});
  EXPECT_EQ(encore_encode_images(model, nullptr, 0, nullptr, nullptr, 0), ENCORE_OK);
  auto options = Sized<encore_image_options>();
  options.activation = ENCORE_ACTIVATION_SOFTMAX;
  ExpectFailure(Encode(model, images, &vectors, &options), ENCORE_INVALID_ARGUMENT,
                {"found an activation"});
  options.activation = 6;
  ExpectFailure(Encode(model, images, &vectors, &options), ENCORE_INVALID_ARGUMENT,
                {"options.activation is 6"});
  options = Sized<encore_image_options>();
  options.size = 3;
  ExpectFailure(Encode(model, images, &vectors, &options), ENCORE_INVALID_ARGUMENT,
                {"options.size is 3", "encore_image_options"});
  ExpectFailure(encore_prepare(model, 0), ENCORE_INVALID_ARGUMENT, {"max_images is 0"});
}

TEST_F(CApiImagesTest, ClassesAreThoseOfImageEncoder) {
  const std::string folder = ENCORE_TEST_DATA_DIR "/vision/siglip_labels";
  const encore_open_options open = ForImages(2);
  const Model model(folder, &open);
  const auto encoder = Taken(ImageEncoder::Open(folder));
  ASSERT_EQ(encore_label_count(model), 3u);
  EXPECT_STREQ(encore_label(model, 1), "dog");
  EXPECT_EQ(encore_label(model, 3), nullptr);
  const std::vector<encore_image> images = Images();
  std::vector<float> values(images.size() * 3, NAN);
  auto options = Sized<encore_image_options>();
  const auto classify = [&](size_t capacity) {
    return encore_classify_images(model, images.data(), images.size(), &options, values.data(),
                                  capacity);
  };
  for (const std::optional<ScoreActivation> activation :
       {std::optional<ScoreActivation>(), std::optional(ScoreActivation::kIdentity)}) {
    options.activation = activation ? ENCORE_ACTIVATION_IDENTITY : ENCORE_ACTIVATION_AS_FOLDER;
    const Tensor expected = Taken(encoder.Classify(Views(), {.activation = activation}));
    ASSERT_EQ(classify(values.size()), ENCORE_OK) << encore_last_error();
    EXPECT_EQ(std::memcmp(values.data(), expected.data(), expected.size_bytes()), 0);
  }
  ExpectFailure(classify(values.size() - 1), ENCORE_INVALID_ARGUMENT, {"capacity is 11 floats"});
  options.normalize = ENCORE_YES;
  ExpectFailure(classify(values.size()), ENCORE_INVALID_ARGUMENT, {"normalize"});
  const Model clip(kClip, &open);
  ExpectFailure(encore_classify_images(clip, images.data(), 1, nullptr, values.data(), 3),
                ENCORE_UNSUPPORTED, {"no head of a classifier"});
}

TEST_F(CApiImagesTest, PatchesAreThoseOfImageEncoder) {
  const std::string folder = ENCORE_TEST_DATA_DIR "/vision/dinov2_registers";
  const encore_open_options open = ForImages();
  const Model model(folder, &open);
  const PatchVectors expected = Taken(Taken(ImageEncoder::Open(folder)).EncodePatches(Views()[0]));
  const encore_image image = Images()[0];
  encore_rows* rows = nullptr;
  size_t first = 0, down = 0, across = 0;
  ASSERT_EQ(encore_encode_patches(model, &image, nullptr, &rows, &first, &down, &across), ENCORE_OK)
      << encore_last_error();
  EXPECT_EQ(first, expected.first_patch);
  EXPECT_EQ(down, expected.rows);
  EXPECT_EQ(across, expected.columns);
  ASSERT_EQ(rows->texts, 1u);
  ASSERT_EQ(rows->starts[1], first + down * across);
  ASSERT_EQ(rows->starts[1] * rows->columns * sizeof(float), expected.vectors.size_bytes());
  EXPECT_EQ(std::memcmp(rows->values, expected.vectors.data(), expected.vectors.size_bytes()), 0);
  encore_rows_free(rows);
  ASSERT_EQ(encore_encode_patches(model, &image, nullptr, &rows, nullptr, nullptr, nullptr),
            ENCORE_OK);
  encore_rows_free(rows);
  ExpectFailure(encore_encode_patches(model, nullptr, nullptr, &rows, &first, &down, &across),
                ENCORE_INVALID_ARGUMENT, {"image is NULL"});
  EXPECT_EQ(rows, nullptr);
  ExpectFailure(encore_encode_patches(model, &image, nullptr, nullptr, &first, &down, &across),
                ENCORE_INVALID_ARGUMENT, {"rows is NULL"});
  auto options = Sized<encore_image_options>();
  options.dimensions = 3;
  ExpectFailure(encore_encode_patches(model, &image, &options, &rows, &first, &down, &across),
                ENCORE_INVALID_ARGUMENT, {"dimensions"});
}

TEST_F(CApiImagesTest, KindsAreToldApart) {
  const encore_open_options open = ForImages();
  const Model model(kClip, &open);
  const Model texts(folder());
  float vector[kD];
  const encore_text text = Text("a red wall");
  const encore_image image = Images()[0];
  size_t count = 0;
  ExpectFailure(encore_encode(model, &text, 1, nullptr, vector, kD, nullptr, nullptr),
                ENCORE_UNSUPPORTED, {"opened as ENCORE_KIND_IMAGE; wanted ENCORE_KIND_TEXT"});
  ExpectFailure(encore_tokenize(model, text, nullptr, nullptr, 0, &count, nullptr),
                ENCORE_UNSUPPORTED, {"opened as ENCORE_KIND_IMAGE; wanted ENCORE_KIND_TEXT"});
  ExpectFailure(encore_encode_images(texts, &image, 1, nullptr, vector, kD), ENCORE_UNSUPPORTED,
                {"opened as ENCORE_KIND_TEXT; wanted ENCORE_KIND_IMAGE"});
  ExpectFailure(encore_encode_images(nullptr, &image, 1, nullptr, vector, kD),
                ENCORE_INVALID_ARGUMENT, {"model is NULL"});
  encore_open_options of_texts = ForImages();
  of_texts.max_length = 8;
  encore_model* none = nullptr;
  ExpectFailure(encore_open(kClip.c_str(), &of_texts, &none), ENCORE_INVALID_ARGUMENT,
                {"max_length"});
  EXPECT_EQ(none, nullptr);
}

}  // namespace
}  // namespace encore
