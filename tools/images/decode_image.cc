// SPDX-License-Identifier: Apache-2.0
//
// Which format a file has, and the turning of pictures by their EXIF data.

#include "tools/images/decode_image.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "encore/resize.h"
#include "engine/base/guarded.h"
#include "engine/base/status_macros.h"
#include "engine/platform/mapped_file.h"
#include "tools/images/decode_formats.h"

namespace encore::images {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;

struct Format {
  std::string_view name;
  std::string_view magic;
  std::string_view riff;                                // after 8 bytes
  void (*decode)(std::span<const uint8_t>, Decoding*);  // null: not in this build
};

#ifdef ENCORE_HAVE_PNG
constexpr auto* kDecodePng = DecodePng;
#else
constexpr void (*kDecodePng)(std::span<const uint8_t>, Decoding*) = nullptr;
#endif
#ifdef ENCORE_HAVE_JPEG
constexpr auto* kDecodeJpeg = DecodeJpeg;
#else
constexpr void (*kDecodeJpeg)(std::span<const uint8_t>, Decoding*) = nullptr;
#endif
#ifdef ENCORE_HAVE_WEBP
constexpr auto* kDecodeWebp = DecodeWebp;
#else
constexpr void (*kDecodeWebp)(std::span<const uint8_t>, Decoding*) = nullptr;
#endif

constexpr Format kFormats[] = {{"PNG", "\x89PNG\r\n\x1A\n", "", kDecodePng},
                               {"JPEG", "\xFF\xD8\xFF", "", kDecodeJpeg},
                               {"WebP", "RIFF", "WEBP", kDecodeWebp}};

// Numbers of a TIFF file, which are low or high byte first.
class TiffReader {
 public:
  explicit TiffReader(std::span<const uint8_t> bytes) : bytes_(bytes) {
    little_ = bytes.size() > 1 && bytes[0] == 'I' && bytes[1] == 'I';
  }
  std::optional<size_t> Read(size_t at, size_t count) const {
    if (at > bytes_.size() || count > bytes_.size() - at) return {};
    size_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value = value << 8 | bytes_[at + (little_ ? count - 1 - i : i)];
    }
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool little_;
};

// 1 .. 8, the tag 0x112 of the first directory; 1 where there is none that makes sense.
size_t OrientationOf(std::span<const uint8_t> exif) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);
  if (exif.size() >= 6 && std::equal(kPrefix.begin(), kPrefix.end(), exif.begin())) {
    exif = exif.subspan(6);
  }
  const TiffReader tiff(exif);
  const std::optional<size_t> directory = tiff.Read(4, 4);
  if (tiff.Read(2, 2) != 42 || !directory) return 1;
  const size_t entries = tiff.Read(*directory, 2).value_or(0);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = *directory + 2 + 12 * i;
    if (tiff.Read(entry, 2) != 0x112) continue;
    if (tiff.Read(entry + 2, 2) != 3) return 1;  // of 16 bits
    const size_t found = tiff.Read(entry + 8, 2).value_or(1);
    return found >= 1 && found <= 8 ? found : 1;
  }
  return 1;
}

// The picture upright: rows and columns are exchanged from 5 on, then sides.
DecodedImage Turned(DecodedImage image, size_t orientation) {
  if (orientation == 1) return image;
  const bool exchanged = orientation >= 5;
  const bool mirrored =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool upside_down =
      orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  DecodedImage turned = {.pixels = std::vector<uint8_t>(image.pixels.size()),
                         .height = exchanged ? image.width : image.height,
                         .width = exchanged ? image.height : image.width,
                         .channels = image.channels};
  uint8_t* out = turned.pixels.data();
  for (size_t y = 0; y < turned.height; ++y) {
    for (size_t x = 0; x < turned.width; ++x, out += image.channels) {
      const size_t from_x = mirrored ? turned.width - 1 - x : x;
      const size_t from_y = upside_down ? turned.height - 1 - y : y;
      const size_t pixel =
          exchanged ? from_x * image.width + from_y : from_y * image.width + from_x;
      std::copy_n(image.pixels.data() + pixel * image.channels, image.channels, out);
    }
  }
  return turned;
}

}  // namespace

bool Decoding::Allocate(size_t height, size_t width, size_t channels) {
  // The picture without its pixels, as ImageView's rules have it.
  const uint8_t pixel = 0;
  const Status status = CheckImageView({.pixels = &pixel,
                                        .width = width,
                                        .height = height,
                                        .stride = width * channels,
                                        .channels = channels});
  if (!status.ok()) {
    fault = status.message();
    return false;
  }
  image = {.pixels = std::vector<uint8_t>(height * width * channels),
           .height = height,
           .width = width,
           .channels = channels};
  return true;
}

Result<DecodedImage> DecodeImage(std::span<const uint8_t> bytes, const std::string& name) {
  const auto has = [&](size_t at, std::string_view text) {
    return bytes.size() >= at + text.size() &&
           std::equal(text.begin(), text.end(), bytes.begin() + static_cast<ptrdiff_t>(at),
                      [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
  };
  for (const Format& format : kFormats) {
    if (!has(0, format.magic) || !has(8, format.riff)) continue;
    const std::string file = name + ": a " + std::string(format.name) + " file";
    if (format.decode == nullptr) {
      return Status(ErrorCode::kUnsupported,
                    file + ", and this encore was built without the library that reads it");
    }
    return internal::Guarded("the pixels of a picture", [&]() -> Result<DecodedImage> {
      Decoding decoding;
      format.decode(bytes, &decoding);
      if (!decoding.fault.empty()) return InvalidArgument(file + ": " + decoding.fault);
      return Turned(std::move(decoding.image), OrientationOf(decoding.exif));
    });
  }
  return InvalidArgument(name + ": found no PNG, JPEG or WebP file; wanted one");
}

Result<DecodedImage> ReadImage(const std::string& path) {
  ENCORE_ASSIGN_OR_RETURN(const internal::MappedFile file,
                          internal::MappedFile::OpenCopy(path, kMaxFileBytes));
  const auto* const bytes = reinterpret_cast<const uint8_t*>(file.bytes().data());
  return DecodeImage({bytes, file.bytes().size()}, path);
}

}  // namespace encore::images
