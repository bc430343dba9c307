// SPDX-License-Identifier: Apache-2.0
//
// Resizing of floats, as processors on torchvision do it that rescale before they resize.

#ifndef ENCORE_ENGINE_IMAGES_FLOAT_RESIZE_H_
#define ENCORE_ENGINE_IMAGES_FLOAT_RESIZE_H_

#include <array>
#include <span>

#include "encore/image_view.h"
#include "encore/resize.h"
#include "engine/images/processor_config.h"

namespace encore::inline v0_1::internal {

// out [size.height, size.width, 3] from an RGB picture, whose bytes are first replaced by
// values[channel][byte]: interpolate(antialias=True) of torch 2.15 in f32, "bilinear", or "bicubic"
// for ResizeFilter::kBicubic. To the bit of torch as it computes on CPUs without FMA
// (ATEN_CPU_CAPABILITY=default): weights in f32, rows before columns, each sum a chain of products
// and sums from the first pixel on. With FMA torch rounds less, and its bits are others.
//
// The picture is a valid view of 3 channels; under the default rounding and denormal modes. Memory
// besides: 8 rows of the picture, 8 of the result, as floats.
void ResizeFloats(const ImageView& image, std::span<const std::array<float, 256>, 3> values,
                  ResizeFilter filter, const ImageSize& size, float* out);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IMAGES_FLOAT_RESIZE_H_
