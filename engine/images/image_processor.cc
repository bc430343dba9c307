// SPDX-License-Identifier: Apache-2.0
//
// Resizing, cropping and padding of a picture, and the table of values.

#include "engine/images/image_processor.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "encore/resize.h"
#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/base/strict_math.h"  // IWYU pragma: keep
#include "engine/images/float_resize.h"
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

// Along one direction: which of the resized pixels lie in the output, and where.
struct Cut {
  size_t begin, count;  // of the resized picture
  size_t at;            // in the output
};
// Cut from the centre, the first pixel left out before the last; or padded, the first side more.
Cut CutFromCentre(size_t resized, size_t output) {
  if (resized >= output) return {(resized - output) / 2, output, 0};
  return {0, resized, (output - resized + 1) / 2};
}

}  // namespace

float ImageProcessor::Normalized(size_t c, float value) const {
  return (value - static_cast<float>(config_.mean[c])) / static_cast<float>(config_.std[c]);
}

ImageProcessor::ImageProcessor(ProcessorConfig config) : config_(std::move(config)) {
  for (size_t c = 0; c < 3; ++c) {
    for (size_t byte = 0; byte < 256; ++byte) {
      // numpy: float64 times the factor, rounded to f32; then f32 minus f32 over f32.
      auto value = static_cast<float>(byte);
      if (config_.floats) {  // torch: f32 times f32, and normalized later
        values_[c][byte] = value * static_cast<float>(*config_.rescale);
        continue;
      }
      if (config_.rescale) value = static_cast<float>(static_cast<double>(byte) * *config_.rescale);
      values_[c][byte] = config_.normalize ? Normalized(c, value) : value;
    }
  }
}

Result<ImageProcessor> ImageProcessor::Open(const Folder& folder, bool ignore_unknown_keys) {
  return Guarded("the image processor", [&]() -> Result<ImageProcessor> {
    const FpEnvScope default_modes;
    ENCORE_ASSIGN_OR_RETURN(ProcessorConfig config,
                            ReadProcessorConfig(folder, ignore_unknown_keys));
    return ImageProcessor(std::move(config));
  });
}

Status ImageProcessor::ProcessFloats(const ImageView& image, std::span<uint8_t> out) const {
  ImageView rgb = image;
  std::vector<uint8_t> pixels;
  if (image.channels != 3) {
    pixels.resize(image.height * image.width * 3);
    rgb = {.pixels = pixels.data(),
           .width = image.width,
           .height = image.height,
           .stride = 3 * image.width,
           .channels = 3};
    ENCORE_RETURN_IF_ERROR(ResizeImage(image, ResizeFilter::kNearest,
                                       {.height = image.height,
                                        .width = image.width,
                                        .rows = image.height,
                                        .columns = image.width},
                                       pixels.data(), rgb.stride));
  }
  std::vector<float> floats(height() * width() * 3);
  ResizeFloats(rgb, values_, config_.filter, config_.output, floats.data());
  for (size_t i = 0; config_.normalize && i < floats.size(); ++i) {
    floats[i] = Normalized(i % 3, floats[i]);
  }
  std::memcpy(out.data(), floats.data(), out.size());
  return {};
}

Status ImageProcessor::Process(const ImageView& image, std::span<uint8_t> out) const {
  ENCORE_RETURN_IF_ERROR(CheckImageView(image));
  if (out.size() != size_bytes()) {
    return InvalidArgument("out: found " + std::to_string(out.size()) + " bytes; wanted " +
                           std::to_string(size_bytes()) + ", of " + std::to_string(height()) +
                           " x " + std::to_string(width()) + " RGB pixels");
  }
  const FpEnvScope default_modes;
  if (config_.floats) return Guarded("an image", [&] { return ProcessFloats(image, out); });
  ENCORE_ASSIGN_OR_RETURN(const ImageSize resized,
                          config_.resize.SizeOf({image.height, image.width}));
  const Cut down = CutFromCentre(resized.height, height());
  const Cut across = CutFromCentre(resized.width, width());
  if (down.count < height() || across.count < width()) std::fill(out.begin(), out.end(), 0);
  const size_t stride = 3 * width();
  return ResizeImage(image, config_.filter,
                     {.height = resized.height,
                      .width = resized.width,
                      .top = down.begin,
                      .left = across.begin,
                      .rows = down.count,
                      .columns = across.count},
                     out.data() + down.at * stride + 3 * across.at, stride);
}

}  // namespace encore::internal
