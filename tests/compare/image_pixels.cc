// SPDX-License-Identifier: Apache-2.0
//
// What folders' image processors make of pictures, for check_images.py. In: a JSON object a line
// with folder, height, width and channels, and after it the pixels' bytes. Out: a JSON object with
// error, or with height, width and floats, after which follow the values of each channel's bytes,
// f32 [3, 256], and the processed RGB [height, width, 3], in bytes or in floats.

#include <iostream>
#include <string>
#include <vector>

#include "engine/images/image_processor.h"
#include "nlohmann/json.hpp"

namespace encore {
namespace {

using nlohmann::json;

void Answer(const json& request, const ImageView& image) {
  const auto fail = [](const Status& status) {
    std::cout << json{{"error", status.message()}}.dump() << std::endl;
  };
  const Result<internal::Folder> folder = internal::Folder::Open(request["folder"]);
  if (!folder.ok()) return fail(folder.status());
  const auto processor = internal::ImageProcessor::Open(*folder);
  if (!processor.ok()) return fail(processor.status());
  std::vector<uint8_t> out(processor->size_bytes());
  const Status status = processor->Process(image, out);
  if (!status.ok()) return fail(status);
  const json answer = {{"height", processor->height()},
                       {"width", processor->width()},
                       {"floats", processor->makes_floats()}};
  const auto write = [](const void* data, size_t bytes) {
    std::cout.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  };
  std::cout << answer.dump() << "\n";
  write(processor->values().data(), sizeof(processor->values()));
  write(out.data(), out.size());
  std::cout.flush();
}

}  // namespace
}  // namespace encore

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request = nlohmann::json::parse(line);
    encore::ImageView image = {
        .width = request["width"], .height = request["height"], .channels = request["channels"]};
    image.stride = image.width * image.channels;
    std::vector<char> pixels(image.stride * image.height);
    std::cin.read(pixels.data(), static_cast<std::streamsize>(pixels.size()));
    image.pixels = reinterpret_cast<const uint8_t*>(pixels.data());
    encore::Answer(request, image);
  }
}
