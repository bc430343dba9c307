// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an image processor's configuration and a picture's sizes: errors with a sentence, or
// an output that is written as a whole, the same whatever it held. The input is
// preprocessor_config.json, config.json, and a picture: height, width, channels and stride, a byte
// each, then its pixels.

#include <algorithm>
#include <string>
#include <vector>

#include "engine/images/image_processor.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/target.h"

namespace encore::fuzz {
namespace {

using internal::ImageProcessor;

// Larger outputs are made of the same code, and take long.
constexpr size_t kMaxBytes = 3 * 600 * 600;

void UseProcessor(const ImageProcessor& processor, const ImageView& image) {
  const size_t values = 3 * processor.height() * processor.width();
  ENCORE_FUZZ_CHECK(processor.size_bytes() == values * (processor.makes_floats() ? 4 : 1));
  if (processor.size_bytes() > kMaxBytes) return;
  std::vector<uint8_t> first(processor.size_bytes(), 1);
  std::vector<uint8_t> second(processor.size_bytes(), 2);
  const Status status = processor.Process(image, first);
  const Status again = processor.Process(image, second);
  ENCORE_FUZZ_CHECK(status.ok() == again.ok());
  if (!status.ok()) return CheckError(status);
  ENCORE_FUZZ_CHECK(first == second, "the output depends on what was there");
}

}  // namespace

void RunImageProcessor(std::string_view input) {
  const std::vector<std::string_view> parts = Parts(input, 3);
  const auto at = [&](size_t i) {
    return i < parts[2].size() ? static_cast<uint8_t>(parts[2][i]) : size_t{0};
  };
  ImageView image = {
      .width = 3 * at(1), .height = 3 * at(0), .stride = at(3), .channels = at(2) % 6};
  image.stride += image.width * std::min<size_t>(image.channels, 3);  // too little for some
  const std::string_view bytes = parts[2].substr(std::min<size_t>(4, parts[2].size()));
  std::vector<uint8_t> pixels(image.stride * image.height + 1);
  for (size_t i = 0; i < pixels.size() && !bytes.empty(); ++i) {
    pixels[i] = static_cast<uint8_t>(bytes[i % bytes.size()]);
  }
  image.pixels = pixels.data();
  static MemoryFolder files;
  files.Write("preprocessor_config.json", parts[0]);
  files.Write("config.json", parts[1]);
  const Result<internal::Folder> folder = internal::Folder::Open(files.path());
  ENCORE_FUZZ_CHECK(folder.ok());
  const auto processor = ImageProcessor::Open(*folder, input.size() % 2 == 1);
  if (!processor.ok()) return CheckError(processor.status());
  UseProcessor(*processor, image);
}

}  // namespace encore::fuzz
