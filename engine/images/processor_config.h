// SPDX-License-Identifier: Apache-2.0
//
// A folder's image processor as transformers 5.23 reads it: class, sizes, filter and numbers.

#ifndef ENCORE_ENGINE_IMAGES_PROCESSOR_CONFIG_H_
#define ENCORE_ENGINE_IMAGES_PROCESSOR_CONFIG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "encore/resize.h"
#include "encore/status.h"
#include "engine/io/folder.h"

namespace encore::inline v0_1::internal {

struct ImageSize {
  size_t height = 0, width = 0;
};

// What a picture is resized to.
struct ResizeRule {
  enum class Kind : uint8_t {
    kKeep,          // its own size
    kExact,         // first x second, height and width
    kShortestEdge,  // the shorter edge to first; the ratio of the edges stays
    kLimitedEdges,  // the same, but the longer edge is at most second
    kWithin,        // as large as fits into first x second, height and width
  };
  Kind kind = Kind::kKeep;
  size_t first = 0, second = 0;

  // kInvalidArgument where an edge would be 0, or longer than 2^30.
  Result<ImageSize> SizeOf(ImageSize picture) const;
};

struct ProcessorConfig {
  std::string source;  // the file, and the class in it
  ResizeRule resize = {};
  ResizeFilter filter = ResizeFilter::kBicubic;
  std::optional<ImageSize> crop = {};  // cut from the centre, or padded with 0 around it
  // Rescaled first, then resized in floats by torchvision (bilinear or bicubic, to `output`), and
  // then normalized.
  bool floats = false;
  ImageSize output = {};
  // The byte b of channel c becomes b, then b * rescale, then (b - mean[c]) / std[c].
  std::optional<double> rescale = {};
  bool normalize = false;
  std::array<double, 3> mean = {}, std = {};
  std::vector<std::string> ignored = {};  // unknown keys
};

// Reads processor_config.json's image_processor, else preprocessor_config.json. Without a class
// there, config.json's model_type decides.
//
// kNotFound without these files. kUnsupported for a class that is not in the table, or that is not
// one of bytes. kInvalidArgument for values that do not fit, for an output whose size would depend
// on the picture, and, without ignore_unknown_keys, for unknown keys. kCorruptData, kIo.
Result<ProcessorConfig> ReadProcessorConfig(const Folder& folder, bool ignore_unknown_keys);

}  // namespace encore::internal

#endif  // ENCORE_ENGINE_IMAGES_PROCESSOR_CONFIG_H_
