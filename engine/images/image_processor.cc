// SPDX-License-Identifier: Apache-2.0
//
// Resizing, cropping and padding of a picture, and the table of values.

#include "engine/images/image_processor.h"

#include <algorithm>
#include <string>

#include "engine/base/guarded.h"
#include "engine/base/int_math.h"
#include "engine/base/status_macros.h"
#include "engine/base/strict_math.h"  // IWYU pragma: keep
#include "engine/platform/fp_env.h"

namespace encore::inline v0_1::internal {
namespace {

constexpr size_t kMaxPictureEdge = size_t{1} << 20;

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

Status ProcessChecked(const ProcessorConfig& config, const ImageView& image, uint8_t* out) {
  const FpEnvScope default_modes;
  ENCORE_ASSIGN_OR_RETURN(const ImageSize resized,
                          config.resize.SizeOf({image.height, image.width}));
  const Cut down = CutFromCentre(resized.height, config.output.height);
  const Cut across = CutFromCentre(resized.width, config.output.width);
  const size_t stride = 3 * config.output.width;
  const bool padded = down.count < config.output.height || across.count < config.output.width;
  if (padded) std::fill_n(out, stride * config.output.height, uint8_t{0});
  Resample(image, config.filter,
           {.height = resized.height,
            .width = resized.width,
            .top = down.begin,
            .left = across.begin,
            .rows = down.count,
            .columns = across.count},
           out + down.at * stride + 3 * across.at, stride);
  return {};
}

}  // namespace

Status CheckImageView(const ImageView& image) {
  const auto size = [&] {
    return "image: " + std::to_string(image.width) + " x " + std::to_string(image.height) +
           " pixels of " + std::to_string(image.channels) + " channels";
  };
  if (image.channels != 1 && image.channels != 3 && image.channels != 4) {
    return InvalidArgument(size() + "; wanted 1, 3 or 4 channels");
  }
  if (image.width == 0 || image.height == 0 || image.width > kMaxPictureEdge ||
      image.height > kMaxPictureEdge) {
    return InvalidArgument(size() + "; wanted edges of 1 .. " + std::to_string(kMaxPictureEdge));
  }
  if (image.width * image.height > ImageView::kMaxPixels) {
    return InvalidArgument(size() + "; wanted at most " + std::to_string(ImageView::kMaxPixels) +
                           " pixels");
  }
  if (image.stride < image.width * image.channels) {
    return InvalidArgument(size() + ", rows of " + std::to_string(image.stride) +
                           " bytes; wanted at least " +
                           std::to_string(image.width * image.channels));
  }
  size_t bytes = 0;
  if (!CheckedMul(image.stride, image.height, &bytes)) {
    return InvalidArgument(size() + ", rows of " + std::to_string(image.stride) +
                           " bytes; wanted what fits into memory");
  }
  if (image.pixels == nullptr) return InvalidArgument(size() + ", found a null pointer to pixels");
  return {};
}

ImageProcessor::ImageProcessor(ProcessorConfig config) : config_(std::move(config)) {
  for (size_t c = 0; c < 3; ++c) {
    for (size_t byte = 0; byte < 256; ++byte) {
      // numpy: float64 times the factor, rounded to f32; then f32 minus f32 over f32.
      auto value = static_cast<float>(byte);
      if (config_.rescale) value = static_cast<float>(static_cast<double>(byte) * *config_.rescale);
      if (config_.normalize) {
        value = (value - static_cast<float>(config_.mean[c])) / static_cast<float>(config_.std[c]);
      }
      values_[c][byte] = value;
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

Status ImageProcessor::Process(const ImageView& image, std::span<uint8_t> out) const {
  return Guarded("an image", [&]() -> Status {
    ENCORE_RETURN_IF_ERROR(CheckImageView(image));
    if (out.size() != size_bytes()) {
      return InvalidArgument("out: found " + std::to_string(out.size()) + " bytes; wanted " +
                             std::to_string(size_bytes()) + ", of " + std::to_string(height()) +
                             " x " + std::to_string(width()) + " RGB pixels");
    }
    return ProcessChecked(config_, image, out.data());
  });
}

}  // namespace encore::internal
