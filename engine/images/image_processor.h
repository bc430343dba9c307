// SPDX-License-Identifier: Apache-2.0
//
// ImageProcessor: from a picture to the pixels that a vision model takes, as a folder's processor
// does in transformers 5.23 on Pillow (CLIPImageProcessorPil and its kin), equal to the bit. Those
// that resize floats by torchvision: equal to the bit of torch without FMA (float_resize.h).

#ifndef ENCORE_ENGINE_IMAGES_IMAGE_PROCESSOR_H_
#define ENCORE_ENGINE_IMAGES_IMAGE_PROCESSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "encore/image_view.h"
#include "encore/status.h"
#include "engine/images/processor_config.h"
#include "engine/io/folder.h"

namespace encore::inline v0_1::internal {

// Immutable; all functions may be called by any thread at any time.
class ImageProcessor {
 public:
  // The float of each byte, for each channel.
  using Values = std::array<std::array<float, 256>, 3>;

  // As ReadProcessorConfig has it.
  static Result<ImageProcessor> Open(const Folder& folder, bool ignore_unknown_keys = false);

  const ProcessorConfig& config() const { return config_; }
  // Of the output, for every picture.
  size_t height() const { return config_.output.height; }
  size_t width() const { return config_.output.width; }
  bool makes_floats() const { return config_.floats; }
  size_t size_bytes() const {
    return height() * width() * 3 * (makes_floats() ? sizeof(float) : 1);
  }

  // Resizes, crops and pads: out is RGB bytes [height, width, 3], or such floats. kInvalidArgument
  // for a view or an output that does not fit, and for edges that resizing would make 0;
  // kOutOfMemory.
  Status Process(const ImageView& image, std::span<uint8_t> out) const;

  // What the model takes, pixel_values [3, height, width], is values()[c][out[y][x][c]]: rescaled
  // and normalized, in f32. Where Process makes floats, these are what it takes.
  const Values& values() const { return values_; }

 private:
  explicit ImageProcessor(ProcessorConfig config);
  float Normalized(size_t channel, float value) const;
  Status ProcessFloats(const ImageView& image, std::span<uint8_t> out) const;

  ProcessorConfig config_;
  Values values_;
};

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IMAGES_IMAGE_PROCESSOR_H_
