// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a file of a picture: a sentence, or a picture of which an image processor makes its
// output, or a sentence too. The input is preprocessor_config.json and the file. Checksums of PNG
// files are made right, as without that hardly a change of one gets beyond them.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "engine/images/image_processor.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/target.h"
#include "tests/support/drawn_picture.h"
#include "tools/images/decode_image.h"

namespace encore::fuzz {
namespace {

constexpr size_t kMaxPixels = size_t{1} << 22;  // of larger ones decoding alone is tried

void MendChecksums(std::vector<uint8_t>* file) {
  constexpr std::array<uint8_t, 4> kMagic = {0x89, 'P', 'N', 'G'};
  if (file->size() < 8 || !std::equal(kMagic.begin(), kMagic.end(), file->begin())) return;
  for (size_t at = 8; at + 12 <= file->size();) {  // chunks: size, name, data, checksum
    uint8_t* const chunk = file->data() + at;
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = size << 8 | chunk[i];
    if (size > file->size() - at - 12) return;
    const uint32_t crc = Crc32({chunk + 4, size + 4});
    for (size_t i = 0; i < 4; ++i) chunk[8 + size + i] = static_cast<uint8_t>(crc >> (24 - 8 * i));
    at += 12 + size;
  }
}

}  // namespace

void RunPictureFiles(std::string_view input) {
  const std::vector<std::string_view> parts = Parts(input, 2);
  std::vector<uint8_t> file(parts[1].begin(), parts[1].end());
  if (input.size() % 8 != 0) MendChecksums(&file);
  const Result<images::DecodedImage> image = images::DecodeImage(file, "it");
  if (!image.ok()) return CheckError(image.status());
  ENCORE_FUZZ_CHECK(image->channels == 1 || image->channels == 3);
  ENCORE_FUZZ_CHECK(image->pixels.size() == image->height * image->width * image->channels);
  if (image->height * image->width > kMaxPixels) return;
  static MemoryFolder files;
  files.Write("preprocessor_config.json", parts[0]);
  const Result<internal::Folder> folder = internal::Folder::Open(files.path());
  ENCORE_FUZZ_CHECK(folder.ok());
  const auto processor = internal::ImageProcessor::Open(*folder);
  if (!processor.ok()) return CheckError(processor.status());
  if (processor->size_bytes() > kMaxPixels) return;
  std::vector<uint8_t> out(processor->size_bytes());
  const Status status = processor->Process(image->View(), out);
  if (!status.ok()) CheckError(status);
}

}  // namespace encore::fuzz
