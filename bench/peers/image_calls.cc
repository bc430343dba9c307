// SPDX-License-Identifier: Apache-2.0
//
// Times encore on pictures for images.py: calls of ImageEncoder::Encode or of ResizeImage.
//
//   image_calls FOLDER PRECISION THREADS HEIGHT WIDTH
//   image_calls resize FILTER TO_HEIGHT HEIGHT WIDTH       to the same ratio of edges
//   image_calls floats FILTER TO_HEIGHT HEIGHT WIDTH       the same of floats, byte / 255
//
// In: a picture's RGB bytes, then lines with a number of pictures and of seconds. Out: for each
// line one of the seconds of each call, at least three; before these, one with what the first
// gives.

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "encore/image_encoder.h"
#include "encore/resize.h"
#include "encore/thread_pool.h"
#include "engine/images/float_resize.h"

namespace encore {
namespace {

template <typename T>
T Taken(Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << result.status() << "\n";
  std::exit(2);
}

using Call = std::function<void(size_t pictures)>;

void Answer(const Call& call) {
  size_t pictures = 0;
  double seconds = 0;
  while (std::cin >> pictures >> seconds) {
    double sum = 0;
    for (int calls = 0; sum < seconds || calls < 3; ++calls) {
      const auto start = std::chrono::steady_clock::now();
      call(pictures);
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      std::cout << elapsed.count() << " ";
      sum += elapsed.count();
    }
    std::cout << std::endl;
  }
}

template <typename T>
void Print(std::span<const T> values) {
  for (const T value : values) std::cout << +value << " ";
  std::cout << std::endl;
}

void EncodeCalls(const std::string& folder, const std::string& precision, int threads,
                 const ImageView& image) {
  const ThreadPool pool = Taken(ThreadPool::Create({.threads = threads}));
  const Executor executor = threads > 1 ? pool.executor() : Executor::Inline();
  const ImageEncoder model =
      Taken(ImageEncoder::Open(folder, {.precision = Taken(PrecisionFromName(precision))}));
  std::vector<float> vectors;
  const auto call = [&](size_t pictures) {
    vectors.resize(pictures * model.dimensions());
    const std::vector<ImageView> images(pictures, image);
    const Status status =
        model.Encode(images, MutableView(vectors.data(), Shape(pictures, model.dimensions())),
                     {.executor = executor});
    if (!status.ok()) std::abort();
  };
  call(1);
  Print<float>(vectors);
  Answer(call);
}

void ResizeCalls(ResizeFilter filter, size_t height, const ImageView& image) {
  const size_t width = height * image.width / image.height;
  std::vector<uint8_t> out(height * width * 3);
  const auto call = [&](size_t pictures) {
    for (size_t i = 0; i < pictures; ++i) {
      const ResizeWindow window = {
          .height = height, .width = width, .rows = height, .columns = width};
      if (!ResizeImage(image, filter, window, out.data(), width * 3).ok()) std::abort();
    }
  };
  call(1);
  Print<uint8_t>(out);
  Answer(call);
}

void FloatCalls(ResizeFilter filter, size_t height, const ImageView& image) {
  std::array<std::array<float, 256>, 3> values;
  for (auto& channel : values) {
    for (size_t byte = 0; byte < 256; ++byte) {
      channel[byte] = static_cast<float>(byte) * static_cast<float>(1.0 / 255);
    }
  }
  const internal::ImageSize size = {height, height * image.width / image.height};
  std::vector<float> out(size.height * size.width * 3);
  const auto call = [&](size_t pictures) {
    for (size_t i = 0; i < pictures; ++i) {
      internal::ResizeFloats(image, values, filter, size, out.data());
    }
  };
  call(1);
  Print<float>(out);
  Answer(call);
}

}  // namespace
}  // namespace encore

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string folder = argv[1];
  encore::ImageView image = {.width = static_cast<size_t>(std::atoi(argv[5])),
                             .height = static_cast<size_t>(std::atoi(argv[4]))};
  image.stride = image.width * 3;
  std::vector<char> pixels(image.stride * image.height);
  std::cin.read(pixels.data(), static_cast<std::streamsize>(pixels.size()));
  image.pixels = reinterpret_cast<const uint8_t*>(pixels.data());
  std::cout.precision(9);
  const auto filter = static_cast<encore::ResizeFilter>(std::atoi(argv[2]));
  if (const auto height = static_cast<size_t>(std::atoi(argv[3])); folder == "resize") {
    encore::ResizeCalls(filter, height, image);
  } else if (folder == "floats") {
    encore::FloatCalls(filter, height, image);
  } else {
    encore::EncodeCalls(folder, argv[2], std::atoi(argv[3]), image);
  }
}
